#include "muster/launch/process.h"

#include <gmock/gmock.h>
#include <sys/wait.h>

namespace muster::launch {
namespace {

using ::testing::Eq;

TEST(StartProcess, NamesAProgramThatCannotBeStarted) {
  const auto child = start_process({.arguments = {"no-such-program"}});
  ASSERT_FALSE(child.has_value());
  EXPECT_THAT(child.error().message, Eq("cannot start 'no-such-program': No such file or directory"));
}

TEST(StartProcess, SetsVariablesOnTopOfItsOwn) {
  ::setenv("LAUNCH_KEPT", "kept", 1);
  ::setenv("LAUNCH_CHANGED", "old", 1);
  auto child = start_process({.arguments = {"sh", "-c", "[ $LAUNCH_KEPT$LAUNCH_CHANGED = keptnew ]"},
                              .environment = {{"LAUNCH_CHANGED", "new"}}});
  ASSERT_TRUE(child.has_value()) << child.error().message;
  int status = -1;
  EXPECT_THAT(::waitpid(child->pid, &status, 0), Eq(child->pid));
  EXPECT_THAT(exit_code_of(status), Eq(0)) << describe_exit(status);
}

}  // namespace
}  // namespace muster::launch
