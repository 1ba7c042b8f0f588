/* Measured points: each accepted point either names a missing feature or makes a scenario, which is
 * accepted or refused with a message. Scenarios with too many devices or layers are skipped, as
 * they only take long. */
#include "sim/run/recipe/recipe.h"
#include "sim/run/scenario/scenario.h"
#include "sim/study/validate/points.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_POINTS = 4, MOST_SIZE = 64, MOST_MICRO_BATCHES = 1 << 8 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_small(const cs_point *point)
{
    const cs_description_model *model = point->run.model;
    const cs_description_parallel *parallel = point->run.parallel;
    return model->layers <= MOST_SIZE && model->experts <= MOST_SIZE &&
           model->mtp_layers <= MOST_SIZE && point->run.hardware->gpus <= MOST_SIZE &&
           parallel->vpp <= MOST_SIZE && point->run.batch->micro_batches <= MOST_MICRO_BATCHES &&
           point->run.batch->global <= MOST_MICRO_BATCHES;
}

static void check_scenario(const cJSON *document)
{
    cs_scenario scenario;
    cs_error error;
    cs_error_init(&error);
    const cs_status status = cs_scenario_read(document, "point", &scenario, &error);
    if (status == CS_OK)
        cs_scenario_finish(&scenario);
    else
        require((status == CS_INVALID || status == CS_OVERFLOW) && error.count > 0);
}

static void check_point(const cs_point *point)
{
    cs_recipe made = {0};
    cs_error error;
    const double seconds = cs_point_step_time(point);
    require(isnan(seconds) || seconds > 0);
    cs_error_init(&error);
    require(cs_recipe_make(&point->run, &made, &error) == CS_OK);
    require((made.document == NULL) == (made.n_missing > 0));
    if (made.document && is_small(point))
        check_scenario(made.document);
    cs_recipe_finish(&made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cs_points points = {0};
    cs_error error;
    cs_error_init(&error);
    const cs_status status = cs_points_parse("p.json", (const char *)data, size, &points, &error);
    if (status == CS_OK) {
        for (uint32_t i = 0; i < points.n && i < MOST_POINTS; i++)
            check_point(&points.points[i]);
    } else {
        require((status == CS_INVALID || status == CS_OVERFLOW) && error.count > 0);
    }
    cs_points_finish(&points);
    return 0;
}
