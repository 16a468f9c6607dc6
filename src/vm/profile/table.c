/* SPDX-License-Identifier: MIT */
#include "vm/profile/table.h"

#include <string.h>

/* Its key becomes one that no function has. */
void
cpprof__vm_table_gone(struct cpprof__vm_table *table,
                      const struct cpprof__vm_function_key *key)
{
    uint32_t found =
        cpprof__table_find(&table->functions, key, sizeof *key, sizeof *key);

    if (found != CPPROF__VM_NONE)
        memset(table->functions.entries.data + found * sizeof *key, 0,
               sizeof *key);
}

bool
cpprof__vm_table_is_full(const struct cpprof__vm_table *table)
{
    return table->functions.entries.n >=
               CPPROF__VM_FUNCTIONS_MAX *
                   sizeof(struct cpprof__vm_function_key) ||
           table->locations.entries.n >=
               CPPROF__VM_LOCATIONS_MAX *
                   sizeof(struct cpprof__vm_location_key);
}

void
cpprof__vm_table_clear(struct cpprof__vm_table *table)
{
    cpprof__table_free(&table->functions);
    cpprof__table_free(&table->locations);
    table->generation++;
}
