// The configuration file of TLS, and texts of the environment and the command line.
#include <string>

#include "fuzz.h"
#include "muster/cluster/cluster.h"
#include "muster/cluster/tls_config.h"
#include "muster/net/net.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::uint8_t what = input.byte() % 3;
  const std::string text(input.text());
  if (what == 0) {
    static_cast<void>(cluster::parse_tls_config(text, "tls.json"));
  } else if (what == 1) {
    static_cast<void>(net::parse_host_port(text));
    static_cast<void>(net::parse_ip(text));
  } else {
    const FixedEnvironment environment({{"MS_ROLE", "MS_WORKER"},
                                        {"MS_SCHED_HOST", text},
                                        {"MS_SCHED_PORT", text},
                                        {"MS_WORKER_NUM", text},
                                        {"MS_NODE_ID", text},
                                        {"MUSTER_HOST_KEY", text}});
    static_cast<void>(cluster::variables_text(environment));
    static_cast<void>(cluster::read_settings(environment));
  }
  return 0;
}
