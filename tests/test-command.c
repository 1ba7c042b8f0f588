/* The tables that parse the command line: they fit, and help, manual and completion can be made. */
#include "sim/cli/command.h"
#include "tests/expect.h"

#include <ctype.h>

static void tables_fit(void **state)
{
    (void)state;
    for (size_t c = 0; cs_commands[c]; c++) {
        const cs_command *command = cs_commands[c];
        size_t n = 0;
        while (cs_command_option(command, n))
            n++;
        if (n > CS_OPTIONS_MAX)
            fail_msg("%s: %zu options, more than %d", command->name, n, CS_OPTIONS_MAX);
        assert_ptr_equal(command, cs_command_find(command->name));
        assert_true(command->max_words >= command->min_words);
        assert_true(strlen(command->summary) > 0 && strlen(command->doc) > 0 && command->run);
    }
}

/* Names and letters of a command's options, the common ones included, are all different. */
static void options_differ(void **state)
{
    (void)state;
    for (size_t c = 0; cs_commands[c]; c++) {
        const cs_option *a, *b;
        for (size_t i = 0; (a = cs_command_option(cs_commands[c], i)); i++) {
            for (size_t j = 0; j < i; j++) {
                b = cs_command_option(cs_commands[c], j);
                if (strcmp(a->name, b->name) == 0 || (a->letter && a->letter == b->letter))
                    fail_msg("%s: --%s and --%s", cs_commands[c]->name, a->name, b->name);
            }
        }
    }
}

/* A sentence without a full stop, so that what prints it can go on. */
static void docs_are_sentences(void **state)
{
    (void)state;
    for (size_t c = 0; cs_commands[c]; c++) {
        const cs_option *option;
        for (size_t i = 0; (option = cs_command_option(cs_commands[c], i)); i++) {
            size_t length = strlen(option->doc);
            if (length == 0 || !isupper((unsigned char)option->doc[0]) ||
                option->doc[length - 1] == '.')
                fail_msg("%s --%s: %s", cs_commands[c]->name, option->name, option->doc);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_fit),
        cmocka_unit_test(options_differ),
        cmocka_unit_test(docs_are_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
