#include "sim/run/print/report.h"

/* The iteration time is taken from the middle half of the run. That half is steady if a quarter of
 * the mini-batches fills the pipeline and another quarter drains it. */
static uint32_t enough_iterations(uint32_t in_flight)
{
    return in_flight > UINT32_MAX / 4 ? UINT32_MAX : 4 * in_flight;
}

/* Estimates the number of mini-batches in flight. If the run never leaves the fill, it has to be
 * derived from the stages: each has a micro-batch in flight. */
static uint32_t in_flight(const cs_scenario *scenario, const cs_steady_part *steady)
{
    const cs_job *job = &scenario->job;
    const uint32_t behind = scenario->plan->n_stages - 1, m = job->micro_batches;
    const uint32_t expected = 1 + behind / m + (behind % m > 0);
    return steady->in_flight == job->iterations && steady->in_flight < expected ? expected
                                                                                : steady->in_flight;
}

/* Only for runs that are long enough to have been filled by their middle. */
static void note_growth(const cs_scenario *scenario, const cs_simulation *simulation,
                        const cs_log *log)
{
    const cs_recurrence *found = &simulation->analysis.recurrence;
    const uint32_t n = scenario->job.iterations;
    if (!scenario->schedule->asynchronous || found->n > 0 || found->end <= found->half + 1 ||
        n < enough_iterations(in_flight(scenario, &simulation->analysis.steady)))
        return;
    cs_log_write(
        log, CS_LOG_INFO,
        "note: mini-batches enter faster than they leave: %u are in flight when half of the %u "
        "have entered, %u when all have; memory grows with the length of the run",
        found->half, n, found->end);
}

void cs_notes_write(const cs_scenario *scenario, const cs_simulation *simulation, const cs_log *log)
{
    if (simulation->lowering.one_nic)
        cs_log_write(
            log, CS_LOG_INFO,
            "note: a ring uses one NIC per node although there are several: one ring per NIC "
            "requires the same number of ranks in every node, numbered node by node");
    const uint32_t n = scenario->job.iterations;
    const uint32_t enough = enough_iterations(in_flight(scenario, &simulation->analysis.steady));
    if (scenario->schedule->asynchronous && !simulation->trace.stopped &&
        scenario->plan->n_devices >= 2 && n < enough) {
        cs_log_write(
            log, CS_LOG_INFO,
            "note: %s has no flush: with %u mini-batch%s, throughput and bubble mostly reflect "
            "fill and drain; set \"iterations\" to at least %u for the steady state",
            scenario->schedule->name, n, n == 1 ? "" : "es", enough);
    }
    note_growth(scenario, simulation, log);
    /* The time to simulate a run is proportional to the number of messages. */
    enum { MANY = 1000000 };
    const cs_lower_report *lowering = &simulation->lowering;
    if (scenario->foregone && lowering->fidelity == CS_FIDELITY_FLOW && lowering->n_flows >= MANY)
        cs_log_write(log, CS_LOG_INFO,
                     "note: %llu messages of collectives were simulated one by one; with "
                     "\"/parallel/fold\": \"yes\" collectives are delays, and only one of several "
                     "identical devices is simulated, which is much faster",
                     (unsigned long long)lowering->n_flows);
}
