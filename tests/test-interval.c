/* The interval around a predicted step time: which runs count, their weights, and how often it holds
 * for a source that it does not know. */
#include "sim/base/random.h"
#include "sim/base/text-stream.h"
#include "sim/validate/interval.h"
#include "tests/expect.h"

#include <gsl/gsl_randist.h>
#include <math.h>

static const char like_h100[] = "estimated transformer h100 bf16 megatron-core no yes yes";

/* Splits eight words into traits. */
static void set_traits(const char *words, cs_likeness *likeness)
{
    assert_int_equal(sscanf(words, "%63s %63s %63s %63s %63s %63s %63s %63s", likeness->traits[0],
                            likeness->traits[1], likeness->traits[2], likeness->traits[3],
                            likeness->traits[4], likeness->traits[5], likeness->traits[6],
                            likeness->traits[7]),
                     CS_N_TRAITS);
}

static void open_source(FILE *out, unsigned source)
{
    fprintf(out, "%s{\"source\": \"s%u\", \"groups\": [", source > 0 ? "]}, " : "", source);
}

static void open_group(FILE *out, const char *words, bool first)
{
    fputs(first ? "{\"traits\": [\"" : ", {\"traits\": [\"", out);
    for (const char *at = words; *at; at++)
        fputs(*at == ' ' ? "\", \"" : (char[]){*at, 0}, out);
    fputs("\"], \"errors_percent\": [", out);
}

static cs_interval find(const char *scenario, const char *text)
{
    cs_interval interval;
    cs_likeness likeness = {0};
    cs_error error;
    cs_error_init(&error);
    set_traits(scenario, &likeness);
    if (cs_interval_find(&likeness, text, &interval, &error) != CS_OK)
        fail_msg("%s\n%s", error.text, text);
    return interval;
}

/* `n` sources with one run each, whose error is -1 %, -2 %, ... */
static cs_interval of_singles(unsigned n)
{
    char *text;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    assert_non_null(out);
    fputs("{\"sources\": [", out);
    for (unsigned s = 0; s < n; s++) {
        open_source(out, s);
        open_group(out, like_h100, true);
        fprintf(out, "%d]}", -1 - (int)s);
    }
    fputs("]}]}", out);
    assert_int_equal(fclose(out), 0);
    const cs_interval interval = find(like_h100, text);
    free(text);
    return interval;
}

/* 0.9 (K + 1) of K weights of 1: of 9 the largest error, of 19 the 18th, of 99 the 90th. With 8
 * there would have to be 8.1. */
static void counts_the_new_source(void **state)
{
    (void)state;
    expect_double("9 sources", 0.09, of_singles(9).within);
    expect_double("19 sources", 0.18, of_singles(19).within);
    expect_double("99 sources", 0.90, of_singles(99).within);
    assert_true(isnan(of_singles(8).within));
    expect_int("8 sources", 8, of_singles(8).n_sources);
}

/* 18 sources with one run of 1 %; one with nine runs of 50 % and one of 1 %. By runs 50 % would be
 * beyond the 27th of 28; by sources, 18.1 are at 1 %, which is enough for 0.9 x 20 = 18. With two
 * such sources, 17.2 are, and 0.9 x 20 are not reached. */
static void weighs_sources(void **state)
{
    (void)state;
    for (unsigned wide = 1; wide <= 2; wide++) {
        char *text;
        size_t length;
        FILE *out = cs_text_stream(&text, &length);
        assert_non_null(out);
        fputs("{\"sources\": [", out);
        for (unsigned s = 0; s < 19; s++) {
            open_source(out, s);
            open_group(out, like_h100, true);
            fputs(s < 19 - wide ? "1]}" : "50, 50, 50, 50, 50, 50, 50, 50, 50, -1]}", out);
        }
        fputs("]}]}", out);
        assert_int_equal(fclose(out), 0);
        expect_double(wide == 1 ? "one wide" : "two wide", wide == 1 ? 0.01 : 0.5,
                      find(like_h100, text).within);
        free(text);
    }
}

/* 14 sources have runs on H100 (errors of 1 %) and A100 (20 %), one of them on H100 in fp8; a
 * 15th has A100 only. For a scenario on H100 the device is shared, but not fp8. For a device
 * without runs, all runs in bf16 count, 15 on A100 and 13 on H100. No source has mixtures of
 * experts. */
static void keeps_traits_that_enough_share(void **state)
{
    (void)state;
    char *text;
    size_t length;
    FILE *out = cs_text_stream(&text, &length);
    assert_non_null(out);
    fputs("{\"sources\": [", out);
    for (unsigned s = 0; s < 15; s++) {
        open_source(out, s);
        open_group(out, "estimated transformer a100 bf16 megatron-core no yes yes", true);
        fputs("20]}", out);
        if (s < 14) {
            open_group(
                out, s == 0 ? "estimated transformer h100 fp8 megatron-core no yes yes" : like_h100,
                false);
            fputs("1]}", out);
        }
    }
    fputs("]}]}", out);
    assert_int_equal(fclose(out), 0);
    const cs_interval narrow =
        find("estimated transformer h100 fp8 megatron-core no yes yes", text);
    expect_double("H100", 0.01, narrow.within);
    expect_int("sources", 14, narrow.n_sources);
    expect_int("runs", 14, narrow.n_runs);
    assert_true(narrow.shared[CS_TRAIT_DEVICE] && !narrow.shared[CS_TRAIT_PRECISION]);
    const cs_interval wide = find("estimated transformer v100 bf16 megatron-core no yes yes", text);
    expect_double("V100", 0.2, wide.within);
    expect_int("all sources", 15, wide.n_sources);
    expect_int("runs in bf16", 28, wide.n_runs);
    const cs_interval others = find("estimated experts h100 fp8 megatron-core no yes yes", text);
    assert_true(!others.shared[CS_TRAIT_NETWORK] && others.shared[CS_TRAIT_DEVICE]);
    expect_double("experts", 0.01, others.within);
    const cs_interval none = find("given any any any ideal no yes no", text);
    assert_true(isnan(none.within));
    expect_int("no source", 0, none.n_sources);
    free(text);
}

/* Each source has its own bias (spread 10 %) and one to twelve runs around it (5 %). In 2,000 draws
 * of 15 sources and a new one, the interval must contain a run of the new source in at least 90 %
 * of the draws, less three standard errors (2 %). It must not contain it in more than 97 %, so that
 * the interval is not simply too wide. */
static void holds_for_a_new_source(void **state)
{
    (void)state;
    enum { DRAWS = 2000, SOURCES = 15 };
    gsl_rng *random = cs_random_stream(7, "intervals");
    assert_non_null(random);
    unsigned held = 0;
    for (unsigned d = 0; d < DRAWS; d++) {
        char *text;
        size_t length;
        FILE *out = cs_text_stream(&text, &length);
        assert_non_null(out);
        fputs("{\"sources\": [", out);
        for (unsigned s = 0; s < SOURCES; s++) {
            const double bias = gsl_ran_gaussian(random, 10);
            open_source(out, s);
            open_group(out, like_h100, true);
            for (unsigned long n = 1 + gsl_rng_uniform_int(random, 12); n > 0; n--)
                fprintf(out, "%.6f%s", bias + gsl_ran_gaussian(random, 5), n > 1 ? ", " : "]}");
        }
        fputs("]}]}", out);
        assert_int_equal(fclose(out), 0);
        const double next = gsl_ran_gaussian(random, 10) + gsl_ran_gaussian(random, 5);
        held += fabs(next) / 100 <= find(like_h100, text).within;
        free(text);
    }
    gsl_rng_free(random);
    if (held < DRAWS * 88 / 100 || held > DRAWS * 97 / 100)
        fail_msg("held in %u of %d draws", held, DRAWS);
}

static void refuses_another_form(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}", "{\"sources\": [{\"groups\": [{}]}]}",
        "{\"sources\": [{\"source\": \"s\", \"groups\": [{\"traits\": [\"a\"]}]}]}"};
    for (size_t i = 0; i < ROWS(texts); i++) {
        cs_interval interval;
        cs_error error;
        cs_error_init(&error);
        const cs_likeness likeness = {0};
        expect_int(texts[i], CS_INVALID, cs_interval_find(&likeness, texts[i], &interval, &error));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_the_new_source), cmocka_unit_test(weighs_sources),
        cmocka_unit_test(keeps_traits_that_enough_share), cmocka_unit_test(holds_for_a_new_source),
        cmocka_unit_test(refuses_another_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
