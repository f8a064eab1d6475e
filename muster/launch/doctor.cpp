#include "muster/launch/doctor.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "muster/base/cores.h"
#include "muster/cluster/cluster.h"
#include "muster/net/net.h"
#include "muster/tensor/tensor.h"

namespace muster::launch {
namespace {

// A worker of a large job holds a connection to each of its peers, and some more.
constexpr rlim_t descriptors_recommended = 1024;

Finding examine_system() {
  utsname system{};
  ::uname(&system);
  const auto bound = cores_of_control_groups(real_files());
  return {.subject = "system",
          .value = fmt::format(
              "{} {} {}, {} cores allowed{}", system.sysname, system.release, system.machine, allowed_cores(),
              bound ? fmt::format(" (a control group gives the time of {:g})", *bound) : "")};
}

Finding examine_kernels(const Processor& processor) {
  const Isa isa = processor.isa;
  return {.subject = "kernels",
          .value = isa == Isa::none
                       ? "reference: this processor has no vector instructions that fast ones use"
                       : fmt::format("{} and reference", to_string(isa))};
}

Finding examine_bfloat16(const Processor& processor) {
  const std::string instructions = bfloat16_instructions(processor);
  return {
      .subject = "bfloat16",
      .value =
          instructions.empty()
              ? "none: this processor has no AVX512_BF16; mixed precision (amp_level) computes in float32 "
                "and rounds"
          : processor.slow_bfloat16
              ? instructions + ", slower than float32 here: products are computed in float32"
              : instructions};
}

Finding examine_primitives() {
  const std::string_view library = kernel_library_name();
  return {.subject = "convolutions",
          .value = !library.empty() ? std::string(library)
                                    : "reference, many times slower: oneDNN is not here (docs/adr/0008)"};
}

Finding examine_shared_memory() {
  Finding finding{.subject = "shared memory", .value = "memfd"};
  const net::Descriptor segment(::memfd_create("muster-doctor", MFD_CLOEXEC));
  if (!segment || ::ftruncate(segment.get(), 1 << 20) != 0)
    finding.problem = fmt::format("memfd_create fails ({}): workers of this host need MUSTER_TRANSPORT=tcp",
                                  std::strerror(errno));
  return finding;
}

// Muster shares memory by memfd, which this does not limit; other libraries of a script may need it.
Finding examine_shm_folder() {
  constexpr std::uint64_t recommended_bytes = 64 << 20;
  Finding finding{.subject = "/dev/shm", .fix = "in a container: --shm-size=1g", .is_warning = true};
  struct statvfs folder {};
  if (::statvfs("/dev/shm", &folder) != 0) {
    finding.problem = fmt::format(
        "it cannot be used ({}): Muster does not need it, data loaders of other "
        "libraries may",
        std::strerror(errno));
    return finding;
  }
  const std::uint64_t size_bytes = std::uint64_t{folder.f_blocks} * folder.f_frsize;
  const std::uint64_t free_bytes = std::uint64_t{folder.f_bavail} * folder.f_frsize;
  finding.value = fmt::format("{} MiB, {} free", size_bytes >> 20, free_bytes >> 20);
  if (free_bytes < recommended_bytes)
    finding.problem = "little: Muster does not need it, data loaders of other libraries may";
  return finding;
}

Finding examine_process_watch() {
  Finding finding{.subject = "process watch", .value = "pidfd"};
  const net::Descriptor self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (!self)
    finding.problem =
        fmt::format("pidfd_open fails ({}): Linux 5.3 or newer is needed", std::strerror(errno));
  return finding;
}

Finding examine_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  Finding finding{
      .subject = "open files",
      .value = fmt::format("{}, raised to {} by each process of a job", limit.rlim_cur, limit.rlim_max)};
  if (limit.rlim_max < descriptors_recommended)
    finding.problem = fmt::format("too few for large jobs: ulimit -n {}", descriptors_recommended);
  return finding;
}

Finding examine_loopback(const std::string& ip) {
  Finding finding{.subject = "loopback " + ip, .value = "can be bound"};
  const auto reserved = net::PortReservation::open(ip);
  if (!reserved && ip == "127.0.0.1")
    finding.problem = reserved.error().message + ": bring up the interface lo";
  else if (!reserved)
    finding.value = "not on this host";
  return finding;
}

Finding examine_resolver(const std::string& host) {
  Finding finding{.subject = fmt::format("resolver '{}'", host)};
  const auto addresses = net::resolve(host);
  if (!addresses) {
    finding.problem = addresses.error().message + ": use addresses, or name it in /etc/hosts";
    return finding;
  }
  for (const std::string& address : *addresses)
    finding.value += (finding.value.empty() ? "" : ", ") + address;
  return finding;
}

// The variables that are set; those that are not are fine here, whatever a job will need.
void examine_variables(const Environment& environment, std::vector<Finding>& findings) {
  for (const cluster::VariableState& state : cluster::inspect_variables(environment))
    if (state.from_environment)
      findings.push_back(
          {.subject = std::string(state.variable->name), .value = state.value, .problem = state.problem});
}

}  // namespace

std::vector<Finding> examine_host(const Environment& environment, const Processor& processor) {
  std::vector<Finding> findings = {
      examine_system(),        examine_kernels(processor),   examine_bfloat16(processor),
      examine_primitives(),    examine_shared_memory(),      examine_shm_folder(),
      examine_process_watch(), examine_descriptor_limit(),   examine_loopback("127.0.0.1"),
      examine_loopback("::1"), examine_resolver("localhost")};
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0) findings.push_back(examine_resolver(name));
  for (Finding& finding : examine_links()) findings.push_back(std::move(finding));
  examine_variables(environment, findings);
  return findings;
}

}  // namespace muster::launch
