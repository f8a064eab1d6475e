#include "muster/launch/hosts/ssh.h"

#include <gmock/gmock.h>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr int exited(int code) { return code << 8; }  // as waitpid tells it

TEST(Ssh, SplitsItsWordsAsAShellDoes) {
  EXPECT_THAT(*split_words(" ssh -p 2222  -i 'my key' -o \"A=b c\" x\\ y ''"),
              ElementsAre("ssh", "-p", "2222", "-i", "my key", "-o", "A=b c", "x y", ""));
  EXPECT_THAT(split_words("  ").error().message, Eq("it names no program"));
  EXPECT_THAT(split_words("ssh 'x").error().message, Eq("a ' is not closed"));
}

TEST(Ssh, AsksNothingAndLetsTheUsersOptionsWin) {
  const auto arguments =
      ssh_arguments("b", {.words = {"ssh", "-p", "2222"}, .own_program = "/a place/muster"});
  EXPECT_THAT(
      arguments,
      ElementsAre("ssh", "-p", "2222", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o",
                  "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3", "-o", "ControlMaster=no", "-o",
                  "ControlPath=none", "-o", "ClearAllForwardings=yes", "-o", "ForwardX11=no", "--", "b",
                  "exec sh -c 'if [ -x \"$1\" ]; then exec \"$1\" agent; fi; exec muster agent' sh "
                  "'/a place/muster'"));
  EXPECT_THAT(ssh_arguments("b", {.agent = "/it's/muster"}).back(), Eq("exec '/it'\\''s/muster' agent"));
}

TEST(Ssh, SaysWhatToDoWhenThereIsNoAgent) {
  const SshOptions options{.words = {"ssh", "-p", "22"}, .own_program = "/x/muster"};
  EXPECT_THAT(describe_ssh_failure("b", exited(255), {"Permission denied (publickey)."}, options),
              Eq("Permission denied (publickey).; it has to work without a question: ssh -p 22 b true"));
  EXPECT_THAT(
      describe_ssh_failure("b", exited(127), {}, options),
      Eq("the program muster is not there (neither /x/muster nor in PATH): install Muster there, or say "
         "where it is by MUSTER_AGENT=/folder/muster"));
  EXPECT_THAT(describe_ssh_failure("b", 9, {}, options), Mentions("agent", "signal 9"));
}

}  // namespace
}  // namespace muster::launch
