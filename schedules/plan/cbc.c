#include "schedules/plan/cbc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Names of CBC 2.10's library, on machines that run programs and on machines that build them. */
static const char *const names[] = {"libCbcSolver.so.3", "libCbcSolver.so"};

static void *open_library(char *why, size_t size)
{
    void *library = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++) {
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        const char *message = library || i > 0 ? NULL : dlerror();
        if (message)
            snprintf(why, size, "%s", message);
    }
    return library;
}

cs_status cs_cbc_load(cs_cbc *cbc, cs_error *error)
{
    char why[256] = "";
    void *library = open_library(why, sizeof(why));
    if (!library)
        return cs_error_add(
            error, CS_FAILED,
            "this planner needs the library of CBC 2.10, which cannot be loaded: %s", why);
        /* C cannot assign an object pointer to a function pointer; both have the same
         * representation here */
#define FIND(name)                                                                                 \
    {                                                                                              \
        void *symbol = dlsym(library, "Cbc_" #name);                                               \
        if (!symbol)                                                                               \
            return cs_error_add(error, CS_FAILED,                                                  \
                                "the library of CBC lacks Cbc_" #name                              \
                                "; this planner needs CBC 2.10");                                  \
        memcpy(&cbc->name, &symbol, sizeof(symbol));                                               \
    }
    CS_CBC_MAP(FIND)
#undef FIND
    return CS_OK;
}
