#include "muster/launch/hosts/mpi_daemon.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

namespace muster::launch {
namespace {
namespace mpi_daemon_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

const FixedEnvironment session(std::map<std::string, std::string, std::less<>>{
    {"PATH", "/opt/mpi/bin:/usr/bin"}, {"LD_LIBRARY_PATH", "/lib64"}});

// As Open MPI 4.1 says it.
TEST(MpiDaemon, IsStartedAsMpirunAsksForIt) {
  const auto start = daemon_start(
      " orted --daemonize -mca ess \"env\" -mca orte_node_regex \"vm,[2:10].99.0.2@0(2)\" "
      "-mca orte_hnp_uri \"2132082688.0;tcp://10.0.0.1:43623\"",
      session);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_THAT(start->words, ElementsAre("orted", "--daemonize", "-mca", "ess", "env", "-mca",
                                        "orte_node_regex", "vm,[2:10].99.0.2@0(2)", "-mca", "orte_hnp_uri",
                                        "2132082688.0;tcp://10.0.0.1:43623"));
  EXPECT_THAT(start->environment, IsEmpty());
}

TEST(MpiDaemon, MayStandInAnInstallationThatMpirunNames) {
  for (const char* joined :
       {":$LD_LIBRARY_PATH", ":${LD_LIBRARY_PATH:-}", "${LD_LIBRARY_PATH:+:}$LD_LIBRARY_PATH"}) {
    const auto start = daemon_start(
        std::string("   PATH=/opt/mpi/bin:$PATH ; export PATH ; LD_LIBRARY_PATH=/opt/mpi/lib") + joined +
            " ; export LD_LIBRARY_PATH ; OPAL_PREFIX=/opt/mpi ; export OPAL_PREFIX;   /opt/mpi/bin/orted "
            "-mca a b",
        session);
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_THAT(start->words, ElementsAre("/opt/mpi/bin/orted", "-mca", "a", "b"));
    EXPECT_THAT(start->environment,
                ElementsAre(Pair("LD_LIBRARY_PATH", "/opt/mpi/lib:/lib64"), Pair("OPAL_PREFIX", "/opt/mpi"),
                            Pair("PATH", "/opt/mpi/bin:/opt/mpi/bin:/usr/bin")));
  }
}

TEST(MpiDaemon, IsAllThatIsStarted) {
  for (const char* asked : {"",
                            "sh",
                            "bash -c 'orted'",
                            "sftp-server",
                            "echo $SHELL",
                            "orted; sh",
                            "sh; orted",
                            "orted\"",
                            "/tmp/orted",
                            "./orted",
                            "/opt/mpi/bin/../../tmp/orted",
                            "/opt/mpi/bin/ssh",
                            "LD_PRELOAD=/tmp/x ; orted",
                            "export LD_PRELOAD ; orted",
                            "LD_LIBRARY_PATH=/tmp/x:$LD_LIBRARY_PATH ; orted",
                            "LD_LIBRARY_PATH=/tmp/x:$LD_LIBRARY_PATH ; /opt/mpi/bin/orted",
                            "LD_LIBRARY_PATH=/opt/mpi/../../tmp ; /opt/mpi/bin/orted",
                            "LD_LIBRARY_PATH=/opt/mpi/$(sh) ; /opt/mpi/bin/orted",
                            "LD_LIBRARY_PATH=/opt/mpi/lib:/tmp/x ; /opt/mpi/bin/orted",
                            "rm -r / ; /opt/mpi/bin/orted"}) {
    const auto start = daemon_start(asked, session);
    ASSERT_FALSE(start) << asked;
    EXPECT_THAT(start.error().message, HasSubstr("was asked for: " + std::string(asked)));
  }
}

// There is no shell that would take them for more.
TEST(MpiDaemon, GetsItsArgumentsAsTheyStand) {
  const auto start = daemon_start("orted $(touch x) `id` | sh && sh > /tmp/x", session);
  ASSERT_TRUE(start);
  EXPECT_THAT(start->words,
              ElementsAre("orted", "$(touch", "x)", "`id`", "|", "sh", "&&", "sh", ">", "/tmp/x"));
}

}  // namespace mpi_daemon_test
}  // namespace
}  // namespace muster::launch
