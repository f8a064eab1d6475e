// What Muster calls of fmt, for a build without its shared library: every inline function of the headers
// (-fkeep-inline-functions), and the templates that they leave to the library.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

namespace fmt::detail {

template dragonbox::decimal_fp<float> dragonbox::to_decimal(float) noexcept;
template dragonbox::decimal_fp<double> dragonbox::to_decimal(double) noexcept;
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template std::locale locale_ref::get<std::locale>() const;

}  // namespace fmt::detail
