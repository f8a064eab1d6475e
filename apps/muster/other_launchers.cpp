#include "other_launchers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace muster::app {
namespace {

struct Told {
  std::string_view option;  // with '-' for '_'
  std::string_view here;
};

constexpr std::string_view workers = "-n NUMBER is the number of workers on each host";
constexpr std::string_view host_count = "--nnodes NUMBER is the number of hosts";
constexpr std::string_view own_host = "--node-rank NUMBER is the rank of this host";
constexpr std::string_view address =
    "on several hosts --scheduler HOST:PORT names the first one, on one leave it out";
constexpr std::string_view printed =
    "all output is printed and logged, --tail RANK,RANK chooses: leave it out";
constexpr std::string_view not_needed = "it is not needed here: leave it out";

constexpr Told table[] = {
    // msrun
    {"--worker-num", "-n NUMBER is the number of workers on each host, --nnodes NUMBER that of hosts"},
    {"--local-worker-num", workers},
    {"--master-addr", address},
    {"--master-port", "--port PORT is the port on one host; on several it stands in --scheduler HOST:PORT"},
    {"--join", "the workers are always waited for: leave it out"},
    {"--bind-core", "processes are bound to no cores: leave it out"},
    {"--cluster-time-out", "--env MS_TOPO_TIMEOUT=SECONDS says how long the workers are waited for"},
    {"--rank-table-file", "--preset ascend --rank-table FILE names a rank table"},
    {"--tail-worker-log", "--tail RANK,RANK chooses whose output is printed"},
    {"--worker-log-name", "--log-dir FOLDER is where the logs are"},
    // torchrun, accelerate, deepspeed
    {"--nproc-per-node", workers},
    {"--num-processes", workers},
    {"--num-gpus", workers},
    {"--num-machines", host_count},
    {"--num-nodes", host_count},
    {"--machine-rank", own_host},
    {"--main-process-ip", address},
    {"--main-process-port", address},
    {"--rdzv-endpoint", address},
    {"--rdzv-backend", not_needed},
    {"--rdzv-id", not_needed},
    {"--rdzv-conf", not_needed},
    {"--standalone", "one host is what it starts on by itself: leave it out"},
    {"--no-python", "a program is known by its name: leave it out"},
    {"--module", "-m MODULE runs a module, behind all options"},
    {"--tee", printed},
    {"--redirects", printed},
    {"-r", printed},
    {"-t", printed},
    {"--local-ranks-filter", "--tail RANK,RANK chooses whose output is printed"},
    {"--local-addr", address},
    {"--monitor-interval", not_needed},
    {"--start-method", not_needed},
    // mpirun, horovodrun, srun
    {"--np", workers},
    {"--ntasks", workers},
    {"--ntasks-per-node", workers},
    {"--nodes", host_count},
    {"-N", host_count},
    {"-H", "--hosts HOST:N,HOST:N names the hosts"},
    {"--host", "--hosts HOST:N,HOST:N names the hosts"},
    {"--nodelist", "--hosts HOST:N,HOST:N names the hosts"},
    {"--machinefile", "--hostfile FILE names a file of hosts"},
    {"-machinefile", "--hostfile FILE names a file of hosts"},
    {"-hostfile", "--hostfile FILE names a file of hosts"},
    {"-x", "--env NAME=VALUE sets a variable"},
    {"--start-timeout", "--env MS_TOPO_TIMEOUT=SECONDS says how long the workers are waited for"},
    {"--allow-run-as-root", not_needed},
    {"--oversubscribe", not_needed},
    {"--bind-to", "processes are bound to no cores: leave it out"},
    {"--map-by", not_needed},
};

}  // namespace

std::optional<std::string> said_here(std::string_view option) {
  std::string name(option.substr(0, option.find('=')));
  std::replace(name.begin(), name.end(), '_', '-');
  const auto found =
      std::find_if(std::begin(table), std::end(table), [&](const Told& told) { return told.option == name; });
  if (found == std::end(table)) return std::nullopt;
  return fmt::format("there is no option '{}': {}", option.substr(0, option.find('=')), found->here);
}

}  // namespace muster::app
