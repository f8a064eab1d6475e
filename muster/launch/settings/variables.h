// Variables of a platform as settings: the variable's name is the origin.
#pragma once

#include <initializer_list>

#include "muster/launch/settings/job_settings.h"

namespace muster::launch {

using SaidText = PartialSettings::Said<std::string>;
using SaidNumber = PartialSettings::Said<std::int64_t>;

// The first of these variables that is set and not empty.
SaidText first_of(const Environment& environment, std::initializer_list<const char*> names);

// The same as a whole number from `least` to `most`; the error names the variable and its value.
Result<SaidNumber> number(const Environment& environment, std::initializer_list<const char*> names,
                          std::int64_t least, std::int64_t most);

}  // namespace muster::launch
