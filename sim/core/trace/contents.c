#include "sim/core/trace/contents.h"

#include "sim/base/vector.h"

#include <stdlib.h>
#include <string.h>

/* ---- copies ---- */

static const char **copy_words(cs_arena *arena, const char *const *words)
{
    size_t n = 0;
    while (words[n])
        n++;
    const char **copies = cs_arena_alloc(arena, n + 1, sizeof(*copies));
    for (size_t i = 0; copies && i < n; i++) {
        copies[i] = cs_arena_copy(arena, words[i]);
        if (!copies[i])
            return NULL;
    }
    return copies;
}

static bool copy_shape(cs_arena *arena, cs_h5_table *to)
{
    const cs_h5_shape *from = to->shape;
    if (!from)
        return true;
    cs_h5_shape *shape = cs_arena_alloc(arena, 1, sizeof(*shape));
    uint64_t *sizes = cs_arena_alloc(arena, from->n, sizeof(*sizes));
    const char **scales = cs_arena_alloc(arena, (size_t)from->n + 1, sizeof(*scales));
    if (!shape || !sizes || !scales)
        return false;
    *shape = (cs_h5_shape){from->n, sizes, scales};
    to->shape = shape;
    for (uint32_t i = 0; i < from->n; i++) {
        sizes[i] = from->sizes[i];
        scales[i] = cs_arena_copy(arena, from->scales[i]);
        if (!scales[i])
            return false;
    }
    return true;
}

static void kept_values(const void *source, uint64_t first, uint64_t count, uint32_t which,
                        void *values)
{
    const cs_contents_table *contents = source;
    const size_t size = cs_h5_size(contents->table.columns[which].type);
    memcpy(values, (const char *)contents->values[which] + first * size, count * size);
}

/* Copies the values of a column, including its texts. */
static void *copy_values(cs_arena *arena, const cs_h5_table *table, const cs_h5_column *column)
{
    void *values = cs_arena_alloc(arena, table->n_rows, cs_h5_size(column->type));
    if (!values)
        return NULL;
    cs_h5_gather(table, column, 0, table->n_rows, values);
    const char **texts = values;
    for (uint64_t i = 0; column->type == CS_H5_TEXT && i < table->n_rows; i++) {
        texts[i] = cs_arena_copy(arena, texts[i]);
        if (!texts[i])
            return NULL;
    }
    return values;
}

static bool copy_column(cs_arena *arena, const cs_h5_column *from, uint32_t which, cs_h5_column *to)
{
    *to = (cs_h5_column){.name = cs_arena_copy(arena, from->name),
                         .type = from->type,
                         .units = cs_arena_copy(arena, from->units),
                         .long_name = cs_arena_copy(arena, from->long_name),
                         .optional = from->optional,
                         .fill = kept_values,
                         .which = which};
    if (from->meanings)
        to->meanings = copy_words(arena, from->meanings);
    return to->name && to->units && to->long_name && (to->meanings || !from->meanings);
}

/* Copies a table without its values. NULL if memory runs out. */
static cs_contents_table *copy_layout(cs_arena *arena, const cs_h5_table *from)
{
    uint32_t n = 0;
    while (from->columns[n].name)
        n++;
    cs_contents_table *made = cs_arena_alloc(arena, 1, sizeof(*made));
    cs_h5_column *columns = cs_arena_alloc(arena, (size_t)n + 1, sizeof(*columns));
    void **values = cs_arena_alloc(arena, n, sizeof(*values));
    if (!made || !columns || !values)
        return NULL;
    *made = (cs_contents_table){.table = *from, .n_columns = n, .values = values};
    made->table.group = cs_arena_copy(arena, from->group);
    made->table.index = cs_arena_copy(arena, from->index);
    made->table.columns = columns;
    made->table.source = made;
    bool done = made->table.group && made->table.index && copy_shape(arena, &made->table);
    for (uint32_t c = 0; c < n && done; c++)
        done = copy_column(arena, &from->columns[c], c, &columns[c]);
    return done ? made : NULL;
}

/* ---- what is handed in ---- */

static cs_status add(cs_contents *contents, cs_contents_item item, cs_error *error)
{
    if (!(item.table || item.attribute) ||
        !cs_vector_reserve((void **)&contents->items, &contents->capacity,
                           contents->n_items + (uint64_t)1, sizeof(*contents->items)))
        return cs_error_no_memory(error);
    contents->items[contents->n_items++] = item;
    return CS_OK;
}

static cs_status take_table(void *context, const cs_h5_table *table, cs_error *error)
{
    cs_contents *contents = context;
    cs_contents_table *made = copy_layout(&contents->arena, table);
    for (uint32_t c = 0; made && c < made->n_columns; c++) {
        if (!cs_progress_step(contents->progress, "taking results", c, made->n_columns))
            return cs_error_add(error, CS_INTERRUPTED, "interrupted");
        made->values[c] = copy_values(&contents->arena, table, &table->columns[c]);
        if (!made->values[c])
            return cs_error_no_memory(error);
    }
    return add(contents, (cs_contents_item){.table = made}, error);
}

static cs_status take_attribute(void *context, const char *name, cs_h5_type type, cs_h5_value value,
                                cs_error *error)
{
    cs_contents *contents = context;
    cs_contents_attribute *made = cs_arena_alloc(&contents->arena, 1, sizeof(*made));
    if (!made)
        return cs_error_no_memory(error);
    *made = (cs_contents_attribute){cs_arena_copy(&contents->arena, name), type, value};
    if (type == CS_H5_TEXT)
        made->value.text = cs_arena_copy(&contents->arena, value.text);
    if (!made->name || (type == CS_H5_TEXT && !made->value.text))
        return cs_error_no_memory(error);
    return add(contents, (cs_contents_item){.attribute = made}, error);
}

void cs_contents_init(cs_contents *contents)
{
    *contents = (cs_contents){.receiver = {take_table, take_attribute, contents}};
    cs_arena_init(&contents->arena);
}

void cs_contents_finish(cs_contents *contents)
{
    cs_arena_finish(&contents->arena);
    free(contents->items);
}

cs_status cs_contents_open(cs_contents *contents, const cs_progress *progress, cs_h5_file **file,
                           cs_error *error)
{
    contents->progress = progress;
    return cs_h5_create_for(&contents->receiver, file, error);
}

cs_status cs_contents_write(const cs_contents *contents, cs_h5_file *file, cs_error *error)
{
    for (uint32_t i = 0; i < contents->n_items; i++) {
        const cs_contents_attribute *attribute = contents->items[i].attribute;
        CS_TRY(attribute
                   ? cs_h5_set(file, attribute->name, attribute->type, attribute->value, error)
                   : cs_h5_write_table(file, &contents->items[i].table->table, error));
    }
    return CS_OK;
}
