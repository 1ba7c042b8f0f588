/* The interval around a predicted step time: contents of a model's file, and coverage. */
#include "sim/study/validate/interval.h"
#include "tests/expect.h"

#include <math.h>
#include <string.h>

/* Two traits: a network and whether the host is waited for. ln 2 = 0.6931. */
#define MODEL(sources, factor)                                                                     \
    "{'interval': {'sources': " sources                                                            \
    ", 'runs': 40, 'centre': 0.1, 'spread': -2, 'factor': " factor                                 \
    ", 'coverage': {'by_run': 0.91, 'by_source': 0.89}, 'effects': {'network': "                   \
    "{'transformer': {'sources': 9, 'centre': -0.1, 'spread': 0}, 'experts': {'sources': "         \
    "1, 'centre': 0.2, 'spread': 0.5}}, 'launch gaps': {'no': {'sources': 9, 'centre': 0, "        \
    "'spread': 0}}}}, 'sources': [{'source': 's', 'datasets': ['d', 'e'], 'fitted': true, "        \
    "'groups': []}, {'source': 't', 'datasets': ['t'], 'fitted': false, 'groups': []}]}"

static cs_status read_model(const char *text, cs_left_out *left_out, cs_error *error)
{
    static char copy[4096];
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    cs_error_init(error);
    return cs_left_out_read(copy, left_out, error);
}

/* Sums of a few doubles of about 1. */
static void expect_near(const char *row, double expected, double got)
{
    if (!(fabs(got - expected) < 1e-12))
        fail_msg("%s: expected %.17g, got %.17g", row, expected, got);
}

static cs_interval find(const cs_left_out *left_out, const char *network, const char *host)
{
    cs_traits traits = {0};
    snprintf(traits[CS_TRAIT_NETWORK], CS_TRAIT_BYTES, "%s", network);
    snprintf(traits[CS_TRAIT_HOST], CS_TRAIT_BYTES, "%s", host);
    return cs_interval_find(left_out, traits);
}

/* Transformers: centre 0.1 - 0.1 = 0; half = 3 exp(-2) sqrt(1 + 1/10 + 1/10).
 * Experts, host waited for, which no source has: centre 0.1 + 0.2; half = 3 exp(-2 + 0.5) sqrt(1 +
 * 1/2 + 1/1), wider. */
static void adds_effects(void **state)
{
    (void)state;
    cs_left_out model;
    cs_error error;
    if (read_model(MODEL("12", "3"), &model, &error) != CS_OK)
        fail_msg("%s", error.text);
    const cs_interval usual = find(&model, "transformer", "no");
    double half = 3 * exp(-2) * sqrt(1.2);
    expect_near("low", exp(0 - half), usual.low);
    expect_near("high", exp(0 + half), usual.high);
    expect_near("within", exp(half) - 1, usual.within); /* a run that takes exp(-half) */
    expect_int("alike", 9, usual.alike[CS_TRAIT_NETWORK]);
    assert_true(usual.matters[CS_TRAIT_NETWORK] && !usual.matters[CS_TRAIT_DEVICE]);
    const cs_interval rare = find(&model, "experts", "yes");
    half = 3 * exp(-1.5) * sqrt(2.5);
    expect_near("low", exp(0.1 + 0.2 - half), rare.low);
    expect_near("high", exp(0.1 + 0.2 + half), rare.high);
    expect_int("alike", 0, rare.alike[CS_TRAIT_HOST]);
    cs_left_out_finish(&model);
}

static void needs_sources(void **state)
{
    (void)state;
    static const char *const texts[] = {MODEL("8", "3"), MODEL("9", "null")};
    for (size_t i = 0; i < ROWS(texts); i++) {
        cs_left_out model;
        cs_error error;
        if (read_model(texts[i], &model, &error) != CS_OK)
            fail_msg("%s", error.text);
        assert_true(isnan(find(&model, "transformer", "no").low));
        assert_true(isnan(find(&model, "transformer", "no").within));
        cs_left_out_finish(&model);
    }
}

static void tells_sources_apart(void **state)
{
    (void)state;
    cs_left_out model;
    cs_error error;
    assert_int_equal(read_model(MODEL("12", "3"), &model, &error), CS_OK);
    expect_int("fitted", CS_SOURCE_FITTED, cs_left_out_use(&model, "e"));
    expect_int("known", CS_SOURCE_KNOWN, cs_left_out_use(&model, "t"));
    expect_int("new", CS_SOURCE_NEW, cs_left_out_use(&model, "s"));
    expect_double("by run", 0.91, model.by_run);
    cs_left_out_finish(&model);
}

static void reads_its_own_file(void **state)
{
    (void)state;
    cs_left_out model;
    cs_error error;
    cs_error_init(&error);
    if (cs_left_out_read(NULL, &model, &error) != CS_OK)
        fail_msg("%s", error.text);
    assert_true(model.n_sources >= CS_INTERVAL_SOURCES && model.factor > 0);
    for (const cJSON *trait = model.effects->child; trait; trait = trait->next) {
        bool known = false;
        for (uint32_t t = 0; t < CS_N_TRAITS; t++)
            known |= strcmp(trait->string, cs_trait_names[t]) == 0;
        if (!known)
            fail_msg("no trait is called %s", trait->string);
    }
    cs_left_out_finish(&model);
}

static void refuses_another_form(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{'sources': []}",
        "{'sources': [], 'interval': {'sources': 9, 'runs': 9, 'centre': 0, 'spread': 0}}",
        "{'sources': [], 'interval': {'sources': 9, 'runs': 9, 'centre': 'x', 'spread': 0, "
        "'effects': {}}}",
        "{'sources': [], 'interval': {'sources': 9, 'runs': 9, 'centre': 0, 'spread': 0, "
        "'effects': {'network': {'experts': {'sources': -1, 'centre': 0, 'spread': 0}}}}}",
        "{'interval': {'sources': 9, 'runs': 9, 'centre': 0, 'spread': 0, 'effects': {}}}"};
    for (size_t i = 0; i < ROWS(texts); i++) {
        cs_left_out model = {0};
        cs_error error;
        expect_error(texts[i], CS_INVALID,
                     "facts/left-out.json: must have the form that tests/left-out-errors.py writes",
                     read_model(texts[i], &model, &error), &error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_effects), cmocka_unit_test(needs_sources),
        cmocka_unit_test(tells_sources_apart), cmocka_unit_test(reads_its_own_file),
        cmocka_unit_test(refuses_another_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
