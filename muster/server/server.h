// Public header of `server`: parameter servers. Tables whose rows live on servers, the rules by which
// optimizers update single rows (docs/adr/0049-parameter-servers.md).
//
// Ownership: plain values; a Table owns its memory. Threads: each object is used by one thread at a time.
#pragma once

#include "muster/server/parameter_client.h"  // IWYU pragma: export
#include "muster/server/parameter_server.h"  // IWYU pragma: export
#include "muster/server/row_rule.h"          // IWYU pragma: export
#include "muster/server/saved_rows.h"        // IWYU pragma: export
#include "muster/server/sharding.h"          // IWYU pragma: export
#include "muster/server/table.h"             // IWYU pragma: export
#include "muster/server/table_spec.h"        // IWYU pragma: export
