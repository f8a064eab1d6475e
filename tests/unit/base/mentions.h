// Matches a text that mentions all of these: EXPECT_THAT(error, Mentions("fc.weight", "(3, 4)", "cast")).
//
// For messages: the names and values that they must tell, and one key word of the fault or of the fix. The
// sentence between them may be written better at any time.
#pragma once

#include <gmock/gmock.h>

namespace muster {

template <class... Part>
auto Mentions(Part... parts) {
  return ::testing::AllOf(::testing::HasSubstr(parts)...);
}

}  // namespace muster
