#include "sim/cli/command.h"

extern const cs_command cs_command_run, cs_command_check, cs_command_plan, cs_command_list,
    cs_command_plot, cs_command_sweep, cs_command_import, cs_command_export, cs_command_model,
    cs_command_strategies, cs_command_osdp, cs_command_calibrate, cs_command_replay,
    cs_command_compare, cs_command_validate, cs_command_advise, cs_command_report,
    cs_command_figures, cs_command_help, cs_command_completion, cs_command_man;

const cs_command *const cs_commands[] = {
    &cs_command_run,      &cs_command_advise,     &cs_command_sweep,  &cs_command_check,
    &cs_command_plan,     &cs_command_list,       &cs_command_plot,   &cs_command_report,
    &cs_command_import,   &cs_command_export,     &cs_command_model,  &cs_command_strategies,
    &cs_command_osdp,     &cs_command_calibrate,  &cs_command_replay, &cs_command_compare,
    &cs_command_validate,
#ifdef CS_PAPERS
    &cs_command_figures,
#endif
    &cs_command_help,     &cs_command_completion, &cs_command_man,    NULL,
};
