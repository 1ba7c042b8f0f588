#include "sim/model/zoo/described.h"

#include "sim/base/text.h"
#include "sim/model/ops/operator.h"
#include "sim/model/zoo/formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 64, TENSORS_MAX = 32, TIMES_MAX = 1 << 16, SLOT = sizeof(cs_list) };

/* ---- keys ---- */

typedef struct key_entry {
    const char *name, *doc;
    const cJSON *fallback;
    double min, max;
    bool is_number;
    uint32_t most;
    cs_list choices; /* list of const char * */
} key_entry;

static const cs_field choice_field = {"choice", CS_FIELD_TEXT};
static const cs_field element_field = {"number", CS_FIELD_COUNT, .min = 1, .max = 1 << 20};

static const cs_field key_fields[] = {
    {"name", CS_FIELD_TEXT, offsetof(key_entry, name), .doc = "as users write it"},
    {"doc", CS_FIELD_TEXT, offsetof(key_entry, doc), .doc = "one line"},
    {"default", CS_FIELD_JSON, offsetof(key_entry, fallback),
     .doc = "its value if it is not given"},
    {"min", CS_FIELD_NUMBER, offsetof(key_entry, min), .fallback = "0", .doc = "least value"},
    {"max", CS_FIELD_NUMBER, offsetof(key_entry, max), .fallback = "0", .doc = "0: none"},
    {"number", CS_FIELD_BOOL, offsetof(key_entry, is_number), .fallback = "false",
     .doc = "any number, else whole numbers"},
    {"most", CS_FIELD_COUNT, offsetof(key_entry, most), .fallback = "0",
     .doc = "most values of a list; 0: it is one number"},
    {"choices", CS_FIELD_LIST, offsetof(key_entry, choices), .fallback = "", .of = &choice_field,
     .doc = "its values", .shape = "[text, ...]"},
    {0}};

static cs_status read_key(const cJSON *value, const cs_json_place *place, cs_arena *arena,
                          cs_field *to, cs_error *error)
{
    key_entry e;
    CS_TRY(cs_field_read(value, place, (const cs_field *const[]){key_fields, NULL},
                         (void *const[]){&e}, arena, error));
    char *text =
        cJSON_IsString(e.fallback) ? strdup(e.fallback->valuestring) : cs_json_line(e.fallback);
    const char **choices = cs_arena_alloc(arena, e.choices.n + 1, sizeof(*choices));
    to->name = e.name;
    to->doc = e.doc;
    to->min = e.min;
    to->max = e.max;
    to->fallback = text ? cs_arena_copy(arena, text) : NULL;
    free(text);
    if (!to->fallback || !choices)
        return cs_error_no_memory(error);
    to->type = cJSON_IsBool(e.fallback) ? CS_FIELD_BOOL
               : e.choices.n > 0        ? CS_FIELD_CHOICE
               : e.most > 0             ? CS_FIELD_LIST
               : e.is_number            ? CS_FIELD_NUMBER
                                        : CS_FIELD_COUNT;
    if (e.choices.n > 0)
        memcpy(choices, e.choices.items, e.choices.n * sizeof(*choices));
    to->choices = choices;
    if (e.most > 0) {
        cs_field *of = cs_arena_alloc(arena, 1, sizeof(*of));
        if (!of)
            return cs_error_no_memory(error);
        *of = element_field;
        of->min = e.min;
        of->max = e.max;
        to->of = of;
        to->each = true;
        to->least = 1;
        to->most = e.most;
        to->min = to->max = 0;
    }
    return CS_OK;
}

/* Checks that a key's default is a value that users could give. */
static cs_status check_default(const cJSON *key, const cs_field *field, const cs_json_place *place,
                               cs_arena *arena, cs_error *error)
{
    cs_field table[] = {*field, {0}};
    void *value = cs_arena_alloc(arena, 1, SLOT);
    cJSON *given = cJSON_CreateObject();
    cs_status status = CS_OK;
    table[0].offset = 0;
    if (!value || !cJSON_AddItemToObject(given, "default",
                                         cJSON_Duplicate(cs_json_member(key, "default"), true)))
        status = cs_error_no_memory(error);
    table[0].name = "default";
    if (status == CS_OK)
        status = cs_field_read(given, place, (const cs_field *const[]){table, NULL},
                               (void *const[]){value}, arena, error);
    cJSON_Delete(given);
    return status;
}

/* ---- building ---- */

/* A family's description as JSON text, and the table of its keys. */
typedef struct description {
    const char *file, *text;
    const cs_field *fields;
} description;

typedef struct builder {
    cs_net *net;
    const description *of;
    const cJSON *root;
    const void *params;
    cs_arena arena;
    struct {
        const char *name;
        double value;
    } numbers[NUMBERS_MAX];
    struct {
        const char *name;
        cs_tensor tensor;
    } tensors[TENSORS_MAX];
    uint32_t n_numbers, n_tensors;
} builder;

static void wrong(builder *b, const cs_json_place *place, const char *format, ...) CS_PRINTF(3, 4);

static void wrong(builder *b, const cs_json_place *place, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    cs_text_formatv(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (b->net->status == CS_OK)
        b->net->status = cs_json_invalid(place, b->net->error, "%s", text);
}

/* Returns the value of a key. If the key is a list, returns element `index`, or its only
 * element. */
static double value_of(const builder *b, const cs_field *field, int index)
{
    const void *at = (const char *)b->params + field->offset;
    const cs_list *list = at;
    switch (field->type) {
    case CS_FIELD_NUMBER:
        return *(const double *)at;
    case CS_FIELD_BOOL:
        return *(const bool *)at;
    case CS_FIELD_LIST:
        return cs_size_or(list, list->n == 1 ? 0 : (uint32_t)index, 0);
    default:
        return *(const uint32_t *)at;
    }
}

/* Finds the value of a name with a dot. "form.megatron": whether the key `form` has the choice
 * `megatron`; "hidden.n": the length of the list `hidden`. */
static bool find_dotted(const builder *b, const char *name, double *value)
{
    const char *dot = strrchr(name, '.');
    char key[64];
    if (!dot || dot - name >= (int)sizeof(key))
        return false;
    cs_text_format(key, sizeof(key), "%.*s", (int)(dot - name), name);
    const cs_field *field = cs_field_find(b->of->fields, key);
    const cJSON *constant = cs_json_member(cs_json_member(b->root, "constants"), key);
    if (strcmp(dot + 1, "n") == 0 && cJSON_IsArray(constant)) {
        *value = cJSON_GetArraySize(constant);
        return true;
    }
    if (!field)
        return false;
    if (strcmp(dot + 1, "n") == 0 && field->type == CS_FIELD_LIST) {
        *value = ((const cs_list *)((const char *)b->params + field->offset))->n;
        return true;
    }
    for (uint32_t i = 0; field->type == CS_FIELD_CHOICE && field->choices[i]; i++)
        if (strcmp(field->choices[i], dot + 1) == 0) {
            *value = value_of(b, field, 0) == i;
            return true;
        }
    return false;
}

static bool find_number(const void *context, const char *name, int index, double *value)
{
    const builder *b = context;
    const cs_field *field = cs_field_find(b->of->fields, name);
    for (uint32_t i = b->n_numbers; i-- > 0;)
        if (strcmp(b->numbers[i].name, name) == 0) {
            *value = b->numbers[i].value;
            return true;
        }
    if (field) {
        *value = value_of(b, field, index);
        return true;
    }
    const cJSON *constant = cs_json_member(cs_json_member(b->root, "constants"), name);
    if (index >= 0)
        constant = cJSON_GetArrayItem(constant, index);
    if (cJSON_IsNumber(constant)) {
        *value = constant->valuedouble;
        return true;
    }
    return find_dotted(b, name, value);
}

static double formula(builder *b, const char *text, const cs_json_place *place)
{
    char what[160];
    double value = 0;
    if (!cs_formula_value(text, find_number, b, &value, what, sizeof(what)))
        wrong(b, place, "the formula \"%.60s\" %s", text, what);
    return value;
}

/* Evaluates a number, true or false, or a formula. */
static double number(builder *b, const cJSON *value, const cs_json_place *place)
{
    if (cJSON_IsNumber(value))
        return value->valuedouble;
    if (cJSON_IsBool(value))
        return cJSON_IsTrue(value);
    if (cJSON_IsString(value))
        return formula(b, value->valuestring, place);
    wrong(b, place, "must be a number or a formula (got %s)", cs_json_kind(value));
    return 0;
}

/* Evaluates a whole number from 0 to `most`. */
static double whole(builder *b, const cJSON *value, double most, const cs_json_place *place)
{
    const double made = number(b, value, place);
    if (made >= 0 && made <= most && made == floor(made))
        return made;
    wrong(b, place, "must be a whole number from 0 to %.0f (got %g)", most, made);
    return 0;
}

static double member(builder *b, const cJSON *step, const char *key, const cs_json_place *place)
{
    const cs_json_place at = {.up = place, .key = key};
    const cJSON *value = cs_json_member(step, key);
    if (!value)
        wrong(b, place, "missing key \"%s\"", key);
    return value ? number(b, value, &at) : 0;
}

static uint32_t count(builder *b, const cJSON *step, const char *key, uint32_t most,
                      const cs_json_place *place)
{
    const cs_json_place at = {.up = place, .key = key};
    const cJSON *value = cs_json_member(step, key);
    if (!value)
        wrong(b, place, "missing key \"%s\"", key);
    return value ? (uint32_t)whole(b, value, most, &at) : 0;
}

/* Returns a copy of a text, in the arena, with its {formulas} replaced by their values. */
static const char *expand(builder *b, const cJSON *value, const cs_json_place *place)
{
    char made[192] = "", inner[96];
    size_t used = 0;
    const char *at = cJSON_GetStringValue(value);
    if (!at)
        wrong(b, place, "must be a text");
    while (at && *at) {
        const size_t plain = strcspn(at, "{"), length = strcspn(at + plain, "}");
        if (at[plain] && !at[plain + length])
            wrong(b, place, "misses a } in \"%.60s\"", at);
        if (used + plain >= sizeof(made) || length >= sizeof(inner) || !at[plain + length])
            break;
        memcpy(made + used, at, plain);
        cs_text_format(inner, sizeof(inner), "%.*s", (int)(length > 0 ? length - 1 : 0),
                       at + plain + 1);
        used += plain;
        used += (size_t)cs_text_format(made + used, sizeof(made) - used, "%.15g",
                                       formula(b, inner, place));
        at += plain + length + 1;
    }
    if (used < sizeof(made))
        cs_text_format(made + used, sizeof(made) - used, "%s", at ? at : "");
    const char *copy = cs_arena_copy(&b->arena, made);
    if (!copy && b->net->status == CS_OK)
        b->net->status = cs_error_no_memory(b->net->error);
    return copy ? copy : "";
}

static cs_tensor tensor(builder *b, const char *name, const cs_json_place *place)
{
    for (uint32_t i = b->n_tensors; i-- > 0;)
        if (strcmp(b->tensors[i].name, name) == 0)
            return b->tensors[i].tensor;
    wrong(b, place, "no step before it makes the tensor \"%.60s\"", name);
    return CS_NO_TENSOR;
}

static void name_tensor(builder *b, const cJSON *step, const char *otherwise, cs_tensor made,
                        const cs_json_place *place)
{
    const char *as = cJSON_GetStringValue(cs_json_member(step, "as"));
    uint32_t i = 0;
    as = as ? as : otherwise;
    while (i < b->n_tensors && strcmp(b->tensors[i].name, as) != 0)
        i++;
    if (i == TENSORS_MAX) {
        wrong(b, place, "has more than %d names of tensors", TENSORS_MAX);
        return;
    }
    b->tensors[i].name = as;
    b->tensors[i].tensor = made;
    b->n_tensors = i == b->n_tensors ? i + 1 : b->n_tensors;
}

/* Sets a number. If `own`, it hides an earlier number of the same name until n_numbers shrinks
 * again; otherwise it overwrites that number. */
static void let(builder *b, const char *name, double value, bool own, const cs_json_place *place)
{
    uint32_t i = b->n_numbers;
    while (!own && i > 0 && strcmp(b->numbers[i - 1].name, name) != 0)
        i--;
    i = own || i == 0 ? b->n_numbers : i - 1;
    if (i == NUMBERS_MAX) {
        wrong(b, place, "has more than %d numbers", NUMBERS_MAX);
        return;
    }
    b->numbers[i].name = name;
    b->numbers[i].value = value;
    b->n_numbers = i == b->n_numbers ? i + 1 : b->n_numbers;
}

static void let_all(builder *b, const cJSON *values, bool own, const cs_json_place *place)
{
    const cJSON *value;
    cJSON_ArrayForEach(value, values)
    {
        const cs_json_place at = {.up = place, .key = value->string};
        let(b, value->string, number(b, value, &at), own, &at);
    }
}

/* Returns the member that says what a step does: the first one except "if" and "in". */
static const cJSON *verb_of(const cJSON *step)
{
    const cJSON *verb = step->child;
    while (verb && (strcmp(verb->string, "if") == 0 || strcmp(verb->string, "in") == 0))
        verb = verb->next;
    return verb;
}

/* ---- operators ---- */

/* Reads a list of sizes; a single number gives `n` equal sizes. */
static cs_list sizes(builder *b, const cJSON *value, uint32_t n, const cs_json_place *place)
{
    const bool is_list = cJSON_IsArray(value);
    cs_list list = {.n = is_list ? (uint32_t)cJSON_GetArraySize(value) : n};
    uint32_t *items = cs_arena_alloc(&b->arena, list.n + (size_t)1, sizeof(*items));
    if (!items) {
        b->net->status = cs_error_no_memory(b->net->error);
        return (cs_list){0};
    }
    for (uint32_t i = 0; i < list.n; i++) {
        const cs_json_place at = {.up = place, .index = (int)i};
        items[i] = (uint32_t)whole(b, is_list ? cJSON_GetArrayItem(value, (int)i) : value,
                                   UINT32_MAX, is_list ? &at : place);
    }
    list.items = items;
    return list;
}

static void set_member(builder *b, const cJSON *value, cs_op_making *m, cs_op_entry *entry,
                       const cs_json_place *place)
{
    const char *key = value->string;
    const uint32_t rank = m->in[0] == CS_NO_TENSOR ? 1 : cs_input_shape(m, 0)->rank;
    const cs_field *field = cs_field_find(cs_op_entry_fields, key);
    if (strcmp(key, "out") == 0) {
        entry->output_shape = sizes(b, value, 1, place);
        return;
    }
    if (strcmp(key, "bias") == 0) {
        entry->biases = number(b, value, place) != 0;
        return;
    }
    if (strcmp(key, "tied_to") == 0 && cJSON_IsString(value)) {
        entry->tied_to = value->valuestring;
        m->lender = tensor(b, value->valuestring, place);
        return;
    }
    void *to = field ? (char *)entry + field->offset : NULL;
    switch (field ? field->type : CS_FIELD_TEXT) {
    case CS_FIELD_COUNT:
        *(uint32_t *)to = (uint32_t)whole(b, value, UINT32_MAX, place);
        break;
    case CS_FIELD_NUMBER:
        *(double *)to = number(b, value, place);
        break;
    case CS_FIELD_INTEGER:
        *(int64_t *)to = (int64_t)whole(b, value, 0x1p53, place);
        break;
    case CS_FIELD_BOOL:
        *(bool *)to = number(b, value, place) != 0;
        break;
    case CS_FIELD_LIST:
        *(cs_list *)to = sizes(b, value, rank > 1 ? rank - 1 : 1, place);
        break;
    default:
        wrong(b, place, "unknown key of an operator");
    }
}

static cs_tensor add_operator(builder *b, const cJSON *step, cs_op_kind kind, cs_op_making *m,
                              const cs_json_place *place)
{
    const cs_operator *operator= cs_operator_of_kind(kind);
    cs_op_entry entry = {.kind = kind};
    const cJSON *value;
    m->entry = &entry;
    cJSON_ArrayForEach(value, step)
    {
        const cs_json_place at = {.up = place, .key = value->string};
        static const char *const others[] = {"of", "as", "if", "in", "else"};
        bool own = value != verb_of(step);
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            own &= strcmp(value->string, others[i]) != 0;
        if (own)
            set_member(b, value, m, &entry, &at);
    }
    if (b->net->status == CS_OK)
        b->net->status = cs_op_making_check(m);
    return b->net->status == CS_OK ? operator->make(m) : CS_NO_TENSOR;
}

static void read_inputs(builder *b, const cJSON *step, cs_op_making *m, const cs_json_place *place)
{
    const cs_json_place at = {.up = place, .key = "of"};
    const cJSON *of = cs_json_member(step, "of"), *one;
    m->n = 0;
    if (!cJSON_IsArray(of)) {
        m->in[m->n++] = tensor(b, cJSON_IsString(of) ? of->valuestring : "x", &at);
        return;
    }
    cJSON_ArrayForEach(one, of)
    {
        const cs_json_place item = {.up = &at, .index = (int)m->n};
        if (m->n == CS_OP_INPUTS_MAX || !cJSON_IsString(one))
            wrong(b, &item, "must be the name of a tensor, one of at most %d", CS_OP_INPUTS_MAX);
        else
            m->in[m->n++] = tensor(b, one->valuestring, &item);
    }
}

/* Adds an operator or a view. */
static void add_named(builder *b, const cJSON *step, const cs_json_place *place)
{
    static const struct {
        const char *verb;
        cs_tensor (*add)(cs_net *net, const char *name, cs_tensor x);
    } views[] = {{"flatten", cs_net_flatten},
                 {"tokens", cs_net_tokens},
                 {"first_of", cs_net_take_first},
                 {"learned", cs_net_add_learned}};
    const char *verb = verb_of(step)->string;
    const cs_json_place at = {.up = place, .key = verb};
    const char *name = expand(b, verb_of(step), &at);
    cs_op_making m = {.net = b->net, .error = b->net->error, .place = place, .name = name};
    read_inputs(b, step, &m, place);
    if (b->net->status != CS_OK)
        return;
    if (strcmp(verb, "features") == 0) {
        const uint32_t features = count(b, step, "out", UINT32_MAX, place);
        name_tensor(b, step, "x", cs_net_features(b->net, name, m.in[0], features), place);
        return;
    }
    for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
        if (strcmp(verb, views[i].verb) == 0) {
            name_tensor(b, step, "x", views[i].add(b->net, name, m.in[0]), place);
            return;
        }
    for (uint32_t kind = 0; kind < CS_N_OP_KINDS; kind++)
        if (strcmp(verb, cs_op_kind_name((cs_op_kind)kind)) == 0 &&
            cs_operator_of_kind((cs_op_kind)kind)->make) {
            name_tensor(b, step, "x", add_operator(b, step, (cs_op_kind)kind, &m, place), place);
            return;
        }
    wrong(b, place, "does not know what \"%.40s\" is: a step, or a kind of operator", verb);
}

/* ---- steps ---- */

static void run_steps(builder *b, const cJSON *steps, const cs_json_place *place, int depth);

/* Adds an input, if the step is one; otherwise returns false. */
static bool run_input(builder *b, const cJSON *step, const cs_json_place *place)
{
    const char *verb = verb_of(step)->string, *name = verb_of(step)->valuestring;
    const cs_json_place at = {.up = place, .key = "shape"};
    cs_tensor made;
    if (strcmp(verb, "image") == 0) {
        const cs_list shape = sizes(b, cs_json_member(step, "shape"), 0, &at);
        cs_extent space = {.rank = shape.n > 0 ? shape.n - 1 : 0};
        if (b->net->status != CS_OK)
            return true;
        if (space.rank == 0 || space.rank > CS_SPACE_MAX) {
            wrong(b, &at, "must be channels and 1 to %d sizes", CS_SPACE_MAX);
            return true;
        }
        for (uint32_t i = 0; i < space.rank; i++)
            space.size[i] = cs_size_at(&shape, i + 1);
        made = cs_net_image(b->net, cs_size_at(&shape, 0), space);
    } else if (strcmp(verb, "token_ids") == 0) {
        made = cs_net_token_ids(b->net, count(b, step, "tokens", UINT32_MAX, place));
    } else if (strcmp(verb, "more_token_ids") == 0) {
        made = cs_net_more_token_ids(b->net, count(b, step, "tokens", UINT32_MAX, place));
    } else {
        return false;
    }
    name_tensor(b, step, name ? name : "x", made, place);
    return true;
}

static void run_step(builder *b, const cJSON *step, const cs_json_place *place, int depth)
{
    const cJSON *first = verb_of(step), *steps = cs_json_member(step, "steps");
    const cJSON *scope = cs_json_member(step, "in");
    const cs_json_place inner = {.up = place, .key = "steps"};
    const cs_json_place at = {.up = place, .key = first ? first->string : NULL};
    const cs_json_place with = {.up = place, .key = "with"};
    const cs_json_place otherwise = {.up = place, .key = "else"};
    const uint32_t n_numbers = b->n_numbers;
    if (!first || depth == CS_JSON_DEPTH) {
        wrong(b, place, first ? "is nested too deeply" : "must be an object with a step");
        return;
    }
    if (cs_json_member(step, "if") && member(b, step, "if", place) == 0) {
        run_steps(b, cs_json_member(step, "else"), &otherwise, depth);
        return;
    }
    const char *verb = first->string;
    const size_t mark = strlen(b->net->scope);
    if (scope && strcmp(verb, "repeat") != 0)
        (void)cs_net_enter(b->net, expand(b, scope, place));
    if (strcmp(verb, "block") == 0) {
        cs_net_block(b->net, "%s", expand(b, first, &at));
    } else if (strcmp(verb, "steps") == 0) {
        run_steps(b, steps, &inner, depth);
    } else if (strcmp(verb, "repeat") == 0 && first->valuestring) {
        const uint32_t times = count(b, step, "times", TIMES_MAX, place);
        for (uint32_t i = 0; i < times && b->net->status == CS_OK; i++) {
            let(b, first->valuestring, i, false, &at);
            if (scope)
                (void)cs_net_enter(b->net, expand(b, scope, place));
            run_steps(b, steps, &inner, depth);
            if (scope)
                cs_net_leave(b->net, (uint32_t)mark);
        }
    } else if (strcmp(verb, "let") == 0) {
        let_all(b, first, false, &at);
    } else if (strcmp(verb, "part") == 0) {
        const cs_json_place root = {.file = b->of->file}, parts = {.up = &root, .key = "parts"};
        const cs_json_place part = {.up = &parts, .key = expand(b, first, &at)};
        const cJSON *of = cs_json_member(cs_json_member(b->root, "parts"), part.key);
        if (!of)
            wrong(b, &at, "unknown part \"%.60s\"", part.key);
        let_all(b, cs_json_member(step, "with"), true, &with);
        run_steps(b, of, &part, depth);
        b->n_numbers = n_numbers;
    } else if (strcmp(verb, "take") == 0 && first->valuestring) {
        name_tensor(b, step, "x", tensor(b, first->valuestring, &at), place);
    } else if (strcmp(verb, "carry") == 0 && first->valuestring) {
        cs_net_carry(b->net, tensor(b, first->valuestring, &at));
    } else if (!run_input(b, step, place)) {
        add_named(b, step, place);
    }
    if (scope)
        cs_net_leave(b->net, (uint32_t)mark);
}

static void run_steps(builder *b, const cJSON *steps, const cs_json_place *place, int depth)
{
    const cJSON *step;
    int i = 0;
    cJSON_ArrayForEach(step, steps)
    {
        const cs_json_place at = {.up = place, .index = i++};
        if (b->net->status != CS_OK)
            return;
        run_step(b, step, &at, depth + 1);
    }
}

static void check(builder *b)
{
    const cs_json_place root = {.file = b->of->file}, list = {.up = &root, .key = "checks"};
    const cJSON *rule;
    int i = 0;
    cJSON_ArrayForEach(rule, cs_json_member(b->root, "checks"))
    {
        const cs_json_place at = {.up = &list, .index = i++};
        const cs_json_place text = {.up = &at, .key = "message"};
        const char *key = cJSON_GetStringValue(cs_json_member(rule, "key"));
        const char *each = cJSON_GetStringValue(cs_json_member(rule, "repeat"));
        const uint32_t times = each ? count(b, rule, "times", TIMES_MAX, &at) : 1;
        for (uint32_t k = 0; k < times && b->net->status == CS_OK; k++) {
            if (each)
                let(b, each, k, false, &at);
            if (member(b, rule, "if", &at) != 0)
                cs_net_refuse(b->net, key ? key : "", "%s",
                              expand(b, cs_json_member(rule, "message"), &text));
        }
    }
}

static void build(cs_net *net, const void *variant, const void *params)
{
    const description *of = variant;
    const cs_json_place root = {.file = of->file}, network = {.up = &root, .key = "network"};
    builder b = {.net = net, .of = of, .params = params, .root = cJSON_Parse(of->text)};
    cs_arena_init(&b.arena);
    if (!b.root && net->status == CS_OK)
        net->status = cs_error_no_memory(net->error);
    check(&b);
    run_steps(&b, cs_json_member(b.root, "network"), &network, 0);
    cs_arena_finish(&b.arena);
    cJSON_Delete((cJSON *)b.root);
}

/* ---- reading ---- */

static const char *text_of(const cJSON *root, const char *key, cs_arena *arena)
{
    const char *text = cJSON_GetStringValue(cs_json_member(root, key));
    return cs_arena_copy(arena, text ? text : "");
}

cs_status cs_family_read(const cJSON *root, const char *file, cs_arena *arena, cs_zoo_entry *family,
                         cs_error *error)
{
    const cs_json_place top = {.file = file}, list = {.up = &top, .key = "keys"};
    const cJSON *keys = cs_json_member(root, "keys"), *key;
    const size_t n = (size_t)cJSON_GetArraySize(keys);
    cs_field *fields = cs_arena_alloc(arena, n + 1, sizeof(*fields));
    description *of = cs_arena_alloc(arena, 1, sizeof(*of));
    char *text = cJSON_PrintUnformatted(root);
    size_t i = 0;
    if (!fields || !of || !text) {
        free(text);
        return cs_error_no_memory(error);
    }
    *of = (description){cs_arena_copy(arena, file), cs_arena_copy(arena, text), fields};
    free(text);
    cJSON_ArrayForEach(key, keys)
    {
        const cs_json_place at = {.up = &list, .index = (int)i};
        fields[i].offset = i * SLOT;
        CS_TRY(read_key(key, &at, arena, &fields[i], error));
        CS_TRY(check_default(key, &fields[i], &at, arena, error));
        i++;
    }
    *family = (cs_zoo_entry){.name = text_of(root, "name", arena),
                             .summary = text_of(root, "summary", arena),
                             .source = text_of(root, "source", arena),
                             .fields = fields,
                             .params_size = (n + 1) * SLOT,
                             .variant = of,
                             .build = build};
    return of->file && of->text && family->name && family->summary && family->source
               ? CS_OK
               : cs_error_no_memory(error);
}
