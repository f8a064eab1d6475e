#include "muster/launch/preload/preload.h"

#include <gmock/gmock.h>

#include "muster/launch/preload/python_command.h"

namespace muster::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using Kind = PythonCommand::Kind;
using Words = std::vector<std::string>;

std::string refusal(const Words& words) {
  const auto command = parse_python_command(words);
  return command ? "none" : command.error().message;
}

TEST(PythonCommand, KnowsPythonsOptions) {
  const PythonCommand expected[] = {
      {.interpreter = {"python3"}, .target = "train.py", .arguments_at = 2},
      {.interpreter = {"/x/python3.11", "-u", "-Wignore", "-Xdev"}, .target = "train.py", .arguments_at = 6},
      {.interpreter = {"python", "-uB"}, .kind = Kind::module, .target = "a.b", .arguments_at = 3},
      {.interpreter = {"python"}, .kind = Kind::module, .target = "a.b", .arguments_at = 2},
      {.interpreter = {"python", "-I"}, .kind = Kind::code, .target = "1/0", .arguments_at = 4},
      {.interpreter = {"python", "--check-hash-based-pycs", "always"}, .target = "x", .arguments_at = 4},
  };
  const Words words[] = {
      {"python3", "train.py", "-m", "x"}, {"/x/python3.11", "-u", "-Wignore", "-X", "dev", "train.py"},
      {"python", "-uBm", "a.b"},          {"python", "-ma.b", "-c"},
      {"python", "-I", "-c", "1/0", "z"}, {"python", "--check-hash-based-pycs", "always", "x"},
  };
  for (std::size_t i = 0; i < std::size(words); ++i)
    EXPECT_TRUE(parse_python_command(words[i]).value() == expected[i]) << i;
}

TEST(PythonCommand, IsRefusedWithTheWordThatNobodyElseCanDo) {
  EXPECT_THAT(refusal({"./train"}), HasSubstr("the command './train' is not Python's"));
  EXPECT_THAT(refusal({}), HasSubstr("the command ''"));
  EXPECT_THAT(refusal({"python", "-ui", "x"}), HasSubstr("option 'i' in '-ui'"));
  EXPECT_THAT(refusal({"python", "-"}), HasSubstr("Python's '-'"));
  EXPECT_THAT(refusal({"python", "-m"}), HasSubstr("names no script"));
  EXPECT_THAT(refusal({"python", "-W"}), HasSubstr("names no script"));
}

TEST(Preload, SetsWhileImportingWhatAllProcessesHave) {
  LaunchSpec spec;
  for (const char* rank : {"0", "1"})
    spec.processes.push_back({.environment = {{"RANK", rank}, {"OMP_NUM_THREADS", "1"}}});
  spec.processes.back().environment.emplace("MORE", "1");
  JobSettings job;
  add_preload(spec, job);
  EXPECT_FALSE(spec.processes.front().preload);
  job.preload = {{"torch"}, "--preload"};
  add_preload(spec, job);
  for (const ProcessSpec& process : spec.processes) {
    EXPECT_THAT(process.preload->modules, ElementsAre("torch"));
    EXPECT_THAT(process.preload->environment,
                Eq(std::map<std::string, std::string>{{"OMP_NUM_THREADS", "1"}}));
  }
}

}  // namespace
}  // namespace muster::launch
