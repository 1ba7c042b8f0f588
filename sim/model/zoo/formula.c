#include "sim/model/zoo/formula.h"

#include "sim/base/text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 64, DEPTH = 32 };

typedef struct parser {
    const char *at;
    cs_formula_names *names;
    const void *context;
    char *wrong; /* error message; "": no error so far */
    size_t size;
    int depth;
} parser;

/* Binary operators, one row per level of precedence, loosest first; all associate to the left. */
static const char *const levels[][7] = {
    {"or"}, {"and"}, {"<=", ">=", "!=", "=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};

enum { N_LEVELS = sizeof(levels) / sizeof(levels[0]) };

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static bool takes(parser *p, const char *token)
{
    const size_t length = strlen(token);
    p->at += strspn(p->at, " ");
    if (strncmp(p->at, token, length) != 0 || (is_name(token[0]) && is_name(p->at[length])))
        return false;
    p->at += length;
    return true;
}

static double fail(parser *p, const char *what, const char *of)
{
    if (!*p->wrong)
        cs_text_format(p->wrong, p->size, "%s \"%s\"", what, of);
    return 0;
}

static double level(parser *p, size_t i);

static double primary(parser *p)
{
    char name[NAME_BYTES];
    double value = 0;
    size_t length = 0;
    p->at += strspn(p->at, " ");
    if (isdigit((unsigned char)*p->at)) {
        char *end;
        value = strtod(p->at, &end);
        p->at = end;
        return value;
    }
    while (is_name(p->at[length]))
        length++;
    if (length == 0 || length >= sizeof(name))
        return fail(p, "must have a number or a name at", p->at);
    memcpy(name, p->at, length);
    name[length] = '\0';
    p->at += length;
    const bool indexed = takes(p, "[");
    const double index = indexed ? level(p, 0) : -1;
    if (indexed && !takes(p, "]"))
        return fail(p, "misses a ] at", p->at);
    if (!*p->wrong &&
        !p->names(p->context, name, index >= 0 && index < 1e6 ? (int)index : -1, &value))
        return fail(p, "has no value for", name);
    return value;
}

static double unary(parser *p)
{
    double value = 0;
    if (p->depth == DEPTH)
        return fail(p, "is nested too deeply at", p->at);
    p->depth++;
    if (takes(p, "not"))
        value = unary(p) == 0;
    else if (takes(p, "-"))
        value = -unary(p);
    else if (takes(p, "(")) {
        value = level(p, 0);
        if (!takes(p, ")"))
            fail(p, "misses a ) at", p->at);
    } else {
        value = primary(p);
    }
    p->depth--;
    return value;
}

static double apply(parser *p, const char *op, double a, double b)
{
    switch (op[0]) {
    case 'o':
        return a != 0 ? a : b;
    case 'a':
        return a != 0 ? b : 0;
    case '=':
        return a == b;
    case '!':
        return a != b;
    case '<':
        return op[1] ? a <= b : a < b;
    case '>':
        return op[1] ? a >= b : a > b;
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    default:
        if (b == 0)
            return fail(p, "divides by 0 before", p->at);
        return op[0] == '/' ? a / b : fmod(a, b);
    }
}

static double level(parser *p, size_t i)
{
    if (i == N_LEVELS)
        return unary(p);
    double value = level(p, i + 1);
    for (size_t k = 0; levels[i][k] && !*p->wrong;) {
        if (takes(p, levels[i][k])) {
            value = apply(p, levels[i][k], value, level(p, i + 1));
            k = 0;
        } else {
            k++;
        }
    }
    return value;
}

bool cs_formula_value(const char *text, cs_formula_names *names, const void *context, double *value,
                      char *wrong, size_t size)
{
    parser p = {.at = text, .names = names, .context = context, .wrong = wrong, .size = size};
    wrong[0] = '\0';
    const double made = level(&p, 0);
    p.at += strspn(p.at, " ");
    if (*p.at)
        fail(&p, "must end before", p.at);
    if (*wrong)
        return false;
    *value = made;
    return true;
}
