// Floating-point numbers as text: the shortest digits that read back as the same number, in the form in which
// numpy prints scalars ("2.3499548", "2.0", "1e-05", "nan"), so that logs of different front ends agree.
#pragma once

#include <string>

namespace muster {

std::string number_text(float value);
std::string number_text(double value);

}  // namespace muster
