#include "muster/server/saved_rows.h"

#include "muster/server/first_value.h"

namespace muster::server {

void first_values(const TableSpec& spec, std::uint64_t first, std::span<float> values) {
  const FirstValues formula(spec);
  for (std::size_t at = 0; at < values.size(); at += spec.width)
    formula.write(first++, values.subspan(at, spec.width));
}

}  // namespace muster::server
