#include "sim/study/validate/points.h"

#include "sim/base/facts.h"
#include "sim/base/file.h"
#include "sim/base/text.h"
#include "sim/base/vector.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(cs_point_measured, member)
#define MEASURED(key, member, what)                                                                \
    {                                                                                              \
        key, CS_FIELD_NUMBER, AT(member), .fallback = "", .above_min = true, .doc = what           \
    }

const cs_field cs_point_measured_fields[] = {
    MEASURED("step_time_s", step_time_s, "time per step, s"),
    MEASURED("samples_per_s", samples_per_s, "samples/s of all GPUs together"),
    MEASURED("tokens_per_s_per_gpu", tokens_per_s_per_gpu, "tokens/s per GPU"),
    MEASURED("peak_allocated_bytes", allocated,
             "torch.cuda.max_memory_allocated of the fullest GPU"),
    MEASURED("peak_reserved_bytes", reserved, "torch.cuda.max_memory_reserved of the fullest GPU"),
    MEASURED("peak_device_bytes", device,
             "peak as nvidia-smi shows it, or a peak that the source does not define"),
    {"per_rank", CS_FIELD_JSON, AT(per_rank), .fallback = "", .doc = "peaks of individual ranks",
     .shape = "{\"0\": {\"allocated\": bytes}, ...}"},
    {"oom", CS_FIELD_JSON, AT(oom), .fallback = "", .doc = "whether the run ran out of memory",
     .shape = "true or false"},
    {0},
};

#undef AT
#define AT(member) offsetof(cs_point, member)
static const cs_field text_field = {"text", CS_FIELD_TEXT};

const cs_field cs_point_fields[] = {
    {"id", CS_FIELD_TEXT, AT(id), .doc = "unique name of the point, like dataset/what"},
    {"measured", CS_FIELD_OBJECT, AT(measured), .of = cs_point_measured_fields,
     .size = sizeof(cs_point_measured), .doc = "measured time and memory", .shape = "{measured}"},
    {"unknown", CS_FIELD_LIST, AT(unknown), .fallback = "[]", .of = &text_field,
     .doc = "what the source does not say, as text"},
    {"quality", CS_FIELD_TEXT, AT(quality), .fallback = "",
     .doc = "A: exact and complete; B: rounded, or with an option taken from elsewhere; C: "
            "something essential is missing or derived; A-memory: A, for memory only"},
    {"features", CS_FIELD_LIST, AT(features), .fallback = "[]", .of = &text_field,
     .doc = "tags by which errors are summarised"},
    {"peers", CS_FIELD_JSON, AT(peers), .fallback = "",
     .doc = "what other tools predict for the point",
     .shape = "{\"tool\": {\"step_time_s\": s}, ...}"},
    {0},
};

void cs_points_finish(cs_points *points)
{
    for (uint32_t i = 0; i < points->n_documents; i++)
        cJSON_Delete(points->documents[i]);
    free(points->documents);
    free(points->points);
    cs_arena_finish(&points->arena);
    *points = (cs_points){0};
}

static cs_status refuse_twice(const cs_points *points, const cs_point *made,
                              const cs_json_place *point, cs_error *error)
{
    const cs_json_place place = {.up = point, .key = "id"};
    char id[CS_TEXT_QUOTED_BYTES];
    for (uint32_t i = 0; i < points->n; i++)
        if (strcmp(points->points[i].id, made->id) == 0)
            return cs_json_invalid(&place, error, "must be unique: %s has a point %s as well",
                                   points->points[i].file, cs_text_quote(made->id, id, sizeof(id)));
    return CS_OK;
}

static cs_status check_kind(const cJSON *value, const cs_json_place *up, const char *key,
                            cJSON_bool (*is)(const cJSON *), const char *expected, cs_error *error)
{
    const cs_json_place place = {.up = up, .key = key};
    return !value || is(value) ? CS_OK : cs_json_invalid(&place, error, "must be %s", expected);
}

/* Checks the members whose format the tables do not define. */
static cs_status check_open(const cs_point *point, const cs_json_place *place, cs_error *error)
{
    const cs_json_place measured = {.up = place, .key = "measured"};
    const cs_point_measured *given = point->measured;
    CS_TRY(check_kind(given->oom, &measured, "oom", cJSON_IsBool, "true or false", error));
    CS_TRY(check_kind(given->per_rank, &measured, "per_rank", cJSON_IsObject, "an object", error));
    return check_kind(point->peers, place, "peers", cJSON_IsObject, "an object", error);
}

static bool add_copy(cJSON *object, const cJSON *member)
{
    cJSON *copy = cJSON_Duplicate(member, true);
    const bool added = copy && cJSON_AddItemToObject(object, member->string, copy);
    if (!added)
        cJSON_Delete(copy);
    return added;
}

/* Adds the values that all points of a file share to a point, unless the point has its own value,
 * which may be null. Returns false if memory runs out. */
static bool add_common(cJSON *point, const cJSON *common)
{
    bool added = true;
    for (const cJSON *member = common ? common->child : NULL; member && added;
         member = member->next) {
        cJSON *own = cJSON_GetObjectItemCaseSensitive(point, member->string);
        if (!own)
            added = add_copy(point, member);
        else if (cJSON_IsObject(own) && cJSON_IsObject(member))
            added = add_common(own, member);
    }
    return added;
}

/* Keeps a value until the points are finished. Deletes it on failure. */
static cs_status keep_document(cJSON *value, cs_points *points, cs_error *error)
{
    if (!value ||
        !cs_vector_reserve((void **)&points->documents, &points->cap_documents,
                           points->n_documents + UINT64_C(1), sizeof(*points->documents))) {
        cJSON_Delete(value);
        return cs_error_no_memory(error);
    }
    points->documents[points->n_documents++] = value;
    return CS_OK;
}

static cs_status add_point(cJSON *value, const cs_json_place *place, const char *dataset,
                           const cJSON *common, cs_points *points, cs_error *error)
{
    cs_point made = {.dataset = dataset};
    const cs_json_place *root = place->up->up;
    if (cJSON_IsObject(value) && !add_common(value, common))
        return cs_error_no_memory(error);
    cJSON *stated = cJSON_Duplicate(value, true);
    CS_TRY(keep_document(stated, points, error));
    CS_TRY(cs_description_read(value, place, cs_point_fields, &made, &points->arena, &made.run,
                               error));
    made.run.name = made.id;
    made.stated = stated;
    CS_TRY(check_open(&made, place, error));
    CS_TRY(refuse_twice(points, &made, place, error));
    made.file = cs_arena_copy(&points->arena, root->file);
    if (!made.file || !cs_vector_reserve((void **)&points->points, &points->capacity,
                                         points->n + UINT64_C(1), sizeof(made)))
        return cs_error_no_memory(error);
    points->points[points->n++] = made;
    return CS_OK;
}

static cs_status read_document(cJSON *document, const cs_json_place *root, cs_points *points,
                               cs_error *error)
{
    const cs_json_place list = {.up = root, .key = "points"};
    const cs_json_place schema = {.up = root, .key = "schema"};
    const cs_json_place named = {.up = root, .key = "dataset"};
    const char *version = cJSON_GetStringValue(cs_json_member(document, "schema"));
    const char *name = cJSON_GetStringValue(cs_json_member(document, "dataset"));
    const cJSON *common = cs_json_member(document, "common");
    const cJSON *values = cs_json_member(document, "points");
    if (!version || strcmp(version, "truth/1") != 0)
        return cs_json_invalid(&schema, error, "must be \"truth/1\" (docs/reference/points.md)");
    if (!name)
        return cs_json_invalid(&named, error, "must be a text: the name of the dataset");
    if (!cJSON_IsArray(values))
        return cs_json_invalid(&list, error, "must be a list of points");
    CS_TRY(check_kind(common, root, "common", cJSON_IsObject, "an object", error));
    const char *dataset = cs_arena_copy(&points->arena, name);
    if (!dataset)
        return cs_error_no_memory(error);
    cs_json_place place = {.up = &list};
    cs_status status = CS_OK;
    for (cJSON *value = values->child; value; value = value->next, place.index++) {
        const cs_status one = add_point(value, &place, dataset, common, points, error);
        status = status != CS_OK ? status : one;
    }
    return status;
}

cs_status cs_points_parse(const char *name, const char *text, size_t length, cs_points *points,
                          cs_error *error)
{
    const cs_json_place root = {.file = name};
    cJSON *document;
    CS_TRY(cs_json_parse(name, text, length, &document, error));
    CS_TRY(keep_document(document, points, error));
    return read_document(document, &root, points, error);
}

cs_status cs_points_load(const char *path, cs_points *points, cs_error *error)
{
    char *text;
    size_t length;
    CS_TRY(cs_file_read(path, CS_JSON_BYTES, &text, &length, error));
    const cs_status status = cs_points_parse(path, text, length, points, error);
    free(text);
    return status;
}

cs_status cs_points_load_shipped(cs_points *points, cs_error *error)
{
    cs_status status = CS_OK;
    for (const cs_facts_file *file = cs_facts_files; file->name && status == CS_OK; file++)
        if (strcmp(file->folder, "points") == 0) {
            char name[128];
            snprintf(name, sizeof(name), "points/%s.json", file->name);
            status = cs_points_parse(name, file->text, strlen(file->text), points, error);
        }
    return status;
}

const cs_point *cs_points_find(const cs_points *points, const char *id, cs_error *error)
{
    cs_guess guess;
    cs_guess_init(&guess, id);
    for (uint32_t i = 0; i < points->n; i++) {
        if (strcmp(points->points[i].id, id) == 0)
            return &points->points[i];
        cs_guess_add(&guess, points->points[i].id);
    }
    (void)cs_error_add(error, CS_USAGE, "no point has the id %s", cs_guess_text(&guess));
    return NULL;
}

double cs_point_step_time(const cs_point *point)
{
    const cs_point_measured *measured = point->measured;
    const double samples = point->run.batch->global;
    const double tokens = samples * point->run.model->seq;
    if (point->quality && strcmp(point->quality, "A-memory") == 0)
        return (double)NAN;
    if (isfinite(measured->step_time_s))
        return measured->step_time_s;
    if (samples > 0 && isfinite(measured->samples_per_s))
        return samples / measured->samples_per_s;
    if (tokens > 0 && isfinite(measured->tokens_per_s_per_gpu))
        return tokens / (measured->tokens_per_s_per_gpu * point->run.hardware->gpus);
    return (double)NAN;
}

bool cs_point_has(const cs_point *point, const char *feature)
{
    for (uint32_t i = 0; i < point->features.n; i++)
        if (strcmp(cs_point_text(&point->features, i), feature) == 0)
            return true;
    return false;
}

bool cs_point_is_exact(const cs_point *point)
{
    return !point->quality || point->quality[0] != 'C';
}
