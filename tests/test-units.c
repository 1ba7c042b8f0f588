/* Quantities: accepted and refused texts, their messages, and how values are shown. */
#include "sim/base/units.h"
#include "tests/expect.h"

#include <math.h>

#define T CS_QUANTITY_TIME
#define B CS_QUANTITY_BYTES
#define R CS_QUANTITY_BANDWIDTH
#define F CS_QUANTITY_FLOP_RATE
#define N CS_QUANTITY_NUMBER

/* The expected values are the definitions of the units; as literals the compiler rounds them. */
static const struct {
    const char *text;
    cs_quantity quantity;
    double value;
} accepted[] = {
    {"5 us", T, 5e-6},
    {"5us", T, 5e-6},
    {"3\tus", T, 3e-6},
    {"2.5 ms", T, 2.5e-3},
    {"7 ns", T, 7e-9},
    {"9 ps", T, 9e-12},
    {"1 s", T, 1},
    {"3 min", T, 180},
    {"2 h", T, 7200},
    {"0.25", T, 0.25},
    {"0", T, 0},
    {"1e-3 s", T, 1e-3},
    {"1E+3 ms", T, 1},
    {"-1 s", T, -1}, /* ranges are the reader's business */
    {"16 GiB", B, 17179869184.0},
    {"1 KiB", B, 1024},
    {"1 MiB", B, 1048576},
    {"1 TiB", B, 1099511627776.0},
    {"1 PiB", B, 1125899906842624.0},
    {"1 GB", B, 1e9},
    {"512 B", B, 512},
    {"3 kB", B, 3000},
    {"2 MB", B, 2e6},
    {"2 TB", B, 2e12},
    {"2 PB", B, 2e15},
    {"1.5 GiB", B, 1610612736.0},
    {"4096", B, 4096},
    {"150 GB/s", R, 150e9},
    {"12.5 GiB/s", R, 13421772800.0},
    {"100 Gbit/s", R, 12.5e9},
    {"8 bit/s", R, 1},
    {"1 Kibit/s", R, 128},
    {"1 B/s", R, 1},
    {"15.7 Tflop/s", F, 15.7e12},
    {"3 flop/s", F, 3},
    {"1 Pflop/s", F, 1e15},
    {"2.5", N, 2.5},
    {"-2.5e-1", N, -0.25},
    {"1e308", N, 1e308},
    {"1e-400", N, 0}, /* too small is 0, too large is an error */
};

static void reads_quantities(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(accepted); i++) {
        double value = NAN;
        cs_error error;
        cs_error_init(&error);
        cs_status status = cs_units_parse(accepted[i].text, accepted[i].quantity, &value, &error);
        expect_error(accepted[i].text, CS_OK, "", status, &error);
        expect_double(accepted[i].text, accepted[i].value, value);
    }
}

static void reads_minus_zero_as_zero(void **state)
{
    (void)state;
    double value = NAN;
    assert_int_equal(cs_units_parse("-0", N, &value, NULL), CS_OK);
    assert_false(signbit(value));
}

#define KNOWN_TIMES  "known: ps, ns, us, ms, s, min, h"
#define KNOWN_BYTES  "known: B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"
#define KNOWN_FLOPS  "known: flop/s, kflop/s, Mflop/s, Gflop/s, Tflop/s, Pflop/s"
#define TIME_WANTED  "must be a number and a unit such as \"5 ms\" (got "
#define BYTES_WANTED "must be a number and a unit such as \"5 GB\" (got "
#define FITTING      "must be a number that fits a double, of at most 63 characters (got "
#define DIGITS_64    "1000000000000000000000000000000000000000000000000000000000000000"

static const struct {
    const char *text;
    cs_quantity quantity;
    const char *message;
} refused[] = {
    {"", T, TIME_WANTED "\"\")"},
    {"us", T, TIME_WANTED "\"us\")"},
    {" 5 us", T, TIME_WANTED "\" 5 us\")"},
    {"5 us ", T, "unknown unit \"us \"; did you mean \"us\"? " KNOWN_TIMES},
    {"5 ", T, TIME_WANTED "\"5 \")"},
    {"5 5 us", T, "unknown unit \"5 us\"; " KNOWN_TIMES},
    {"5 us us", T, "unknown unit \"us us\"; " KNOWN_TIMES},
    {"5\nus", T, "unknown unit \"\\nus\"; did you mean \"us\"? " KNOWN_TIMES},
    {"5 US", T, "unknown unit \"US\"; did you mean \"us\"? " KNOWN_TIMES},
    {"5 sec", T, "unknown unit \"sec\"; " KNOWN_TIMES},
    {"5 usec", T, "unknown unit \"usec\"; " KNOWN_TIMES},
    {"5 GB", T, "unknown unit \"GB\"; " KNOWN_TIMES},
    {"+5 us", T, TIME_WANTED "\"+5 us\")"},
    {"05 us", T, TIME_WANTED "\"05 us\")"},
    {".5 us", T, TIME_WANTED "\".5 us\")"},
    {"5. us", T, TIME_WANTED "\"5. us\")"},
    {"5e us", T, TIME_WANTED "\"5e us\")"},
    {"5,0 us", T, "unknown unit \",0 us\"; " KNOWN_TIMES},
    {"nan", T, TIME_WANTED "\"nan\")"},
    {"inf", T, TIME_WANTED "\"inf\")"},
    {"-inf s", T, TIME_WANTED "\"-inf s\")"},
    {"0x10 s", T, "unknown unit \"x10 s\"; " KNOWN_TIMES},
    {"1e400 s", T, FITTING "\"1e400 s\")"},
    {"1e308 h", T, FITTING "\"1e308 h\")"},
    {"-1e999", N, FITTING "\"-1e999\")"},
    {DIGITS_64, N, FITTING "\"" DIGITS_64 "\")"},
    {"5 gb", B, "unknown unit \"gb\"; did you mean \"GB\"? " KNOWN_BYTES},
    {"5 KB", B, "unknown unit \"KB\"; did you mean \"kB\"? " KNOWN_BYTES},
    {"5 GIB", B, "unknown unit \"GIB\"; did you mean \"GiB\"? " KNOWN_BYTES},
    {"5 GB/s", B, "unknown unit \"GB/s\"; " KNOWN_BYTES},
    {"B", B, BYTES_WANTED "\"B\")"},
    {"12 Gb/s", R, "unknown unit \"Gb/s\"; did you mean \"Gbit/s\"? bytes are \"GB/s\""},
    {"12 gb/s", R, "unknown unit \"gb/s\"; did you mean \"Gbit/s\"? bytes are \"GB/s\""},
    {"12 Gbps", R, "unknown unit \"Gbps\"; did you mean \"Gbit/s\"? bytes are \"GB/s\""},
    {"12 gbps", R, "unknown unit \"gbps\"; did you mean \"Gbit/s\"? bytes are \"GB/s\""},
    {"12 Gbit", R, "unknown unit \"Gbit\"; did you mean \"Gbit/s\"? bytes are \"GB/s\""},
    {"12 MBit/s", R, "unknown unit \"MBit/s\"; did you mean \"Mbit/s\"? bytes are \"MB/s\""},
    {"12 kibps", R, "unknown unit \"kibps\"; did you mean \"Kibit/s\"? bytes are \"KiB/s\""},
    {"12 KB/s", R, "unknown unit \"KB/s\"; did you mean \"kB/s\"? bits are \"kbit/s\""},
    {"12 GBps", R, "unknown unit \"GBps\"; did you mean \"GB/s\"? bits are \"Gbit/s\""},
    {"12 GB", R, "unknown unit \"GB\"; did you mean \"GB/s\"? bits are \"Gbit/s\""},
    {"12 bps", R, "unknown unit \"bps\"; did you mean \"bit/s\"? bytes are \"B/s\""},
    {"5 TFLOP/s", F, "unknown unit \"TFLOP/s\"; did you mean \"Tflop/s\"? " KNOWN_FLOPS},
    {"5 Tflops", F, "unknown unit \"Tflops\"; did you mean \"Tflop/s\"? " KNOWN_FLOPS},
    {"5 s", N, "must be a plain number (got \"s\" after it)"},
    {"five", N, "must be a number (got \"five\")"},
};

static void refuses_the_rest(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(refused); i++) {
        double value = 42;
        cs_error error;
        cs_error_init(&error);
        cs_status status = cs_units_parse(refused[i].text, refused[i].quantity, &value, &error);
        expect_error(refused[i].text, CS_INVALID, refused[i].message, status, &error);
        expect_double(refused[i].text, 42, value); /* untouched */
    }
}

static const struct {
    double value;
    cs_quantity quantity;
    int digits;
    const char *text;
} shown[] = {
    {1.5e-3, T, 3, "1.5 ms"},
    {0, T, 3, "0 s"},
    {999.4e-6, T, 3, "999 us"},
    {999.9e-6, T, 3, "1 ms"}, /* rounds up to the next unit */
    {1e-12, T, 3, "1 ps"},
    {2e-15, T, 3, "0.002 ps"},
    {59, T, 3, "59 s"},
    {59.99, T, 3, "1 min"},
    {90, T, 3, "1.5 min"},
    {5400, T, 3, "1.5 h"},
    {-2e-6, T, 3, "-2 us"},
    {1.0 / 3, T, 6, "333.333 ms"},
    {16e9, B, 3, "16 GB"},
    {950, B, 2, "950 B"},
    {100e6, B, 1, "100 MB"}, /* zeros before the point stay */
    {17179869184.0, B, 4, "17.18 GB"},
    {12.5e9, R, 3, "12.5 GB/s"},
    {15.7e12, F, 3, "15.7 Tflop/s"},
    {1e25, F, 3, "1e+10 Pflop/s"},
    {0.1, N, 17, "0.10000000000000001"},
    {1234.5, N, 3, "1234"}, /* digits before the point are not lost; 1234.5 rounds to even */
    {0, N, 3, "0"},
    {INFINITY, R, 3, "inf B/s"},
    {-INFINITY, N, 3, "-inf"},
    {NAN, N, 3, "nan"},
};

static void shows_quantities(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(shown); i++) {
        char text[CS_UNITS_TEXT_BYTES];
        cs_units_format(shown[i].value, shown[i].quantity, shown[i].digits, text, sizeof(text));
        expect_text(shown[i].text, shown[i].text, text);
        expect_text(shown[i].text, isnan(shown[i].value) ? "-" : shown[i].text,
                    cs_units_text(shown[i].value, shown[i].quantity, shown[i].digits).s);
    }
}

/* The longest that can come out: a sign, 17 digits, point and exponent, a unit. */
static void any_quantity_fits_the_buffer(void **state)
{
    (void)state;
    static const double values[] = {-1.2345678901234567e-3, -1.2345678901234567e-300,
                                    -1.2345678901234567e300, -999999.12345678901, -0.00123456789};
    for (size_t i = 0; i < ROWS(values); i++) {
        for (int quantity = T; quantity <= N; quantity++) {
            char exact[CS_UNITS_TEXT_BYTES], roomy[200];
            cs_units_format(values[i], (cs_quantity)quantity, 17, exact, sizeof(exact));
            cs_units_format(values[i], (cs_quantity)quantity, 17, roomy, sizeof(roomy));
            expect_text("longest", roomy, exact);
        }
    }
}

static void cuts_off_at_the_size(void **state)
{
    (void)state;
    char text[8] = "xxxxxxx";
    cs_units_format(1.5e-3, T, 3, text, 4);
    assert_memory_equal(text, "1.5\0xxx", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_quantities),
        cmocka_unit_test(reads_minus_zero_as_zero),
        cmocka_unit_test(refuses_the_rest),
        cmocka_unit_test(shows_quantities),
        cmocka_unit_test(any_quantity_fits_the_buffer),
        cmocka_unit_test(cuts_off_at_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
