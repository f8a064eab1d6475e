#include "ranks.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

namespace muster::benchmarks {
namespace {

using collective::Endpoint;
using collective::Group;
using collective::Listener;
using Clock = std::chrono::steady_clock;

// How the ranks find each other: a board that all of them see.
struct Notice {
  std::uint16_t port;
  char local_name[64];
};
struct Board {
  std::atomic<std::uint32_t> written;
  Notice notices[256];
};

std::shared_ptr<const net::Security> security_of(Transport transport) {
  if (transport != Transport::tls) return nullptr;
  auto made = net::Security::from_token("a token for measuring, known to all");
  if (!made) die(made.error());
  return *std::move(made);
}

std::string host_of(const Crew& crew, std::uint32_t rank) {
  const std::uint32_t all = crew.transport == Transport::automatic ? crew.ranks : 1;
  return fmt::format("host {}", rank / (crew.ranks_of_host == 0 ? all : crew.ranks_of_host));
}

std::unique_ptr<Communicator> connect(Board& board, std::uint32_t rank, const Crew& crew) {
  auto listener = Listener::open("127.0.0.1");
  if (!listener) die(listener.error());
  Notice& notice = board.notices[rank];
  notice.port = listener->port();
  std::strncpy(notice.local_name, listener->local_name().c_str(), sizeof(notice.local_name) - 1);
  board.written.fetch_add(1);
  const auto give_up = Clock::now() + std::chrono::seconds(20);
  while (board.written.load() < crew.ranks) {
    if (Clock::now() > give_up) die({Code::timeout, "not all ranks started"});
    ::usleep(1000);
  }
  Group group{.epoch = 1, .job_id = 1, .rank = rank, .endpoints = {}};
  if (crew.transport == Transport::ucx) group.transport = collective::Transport::ucx;
  for (std::uint32_t r = 0; r < crew.ranks; ++r)
    group.endpoints.push_back(Endpoint{.host_key = host_of(crew, r),
                                       .address = "127.0.0.1",
                                       .port = board.notices[r].port,
                                       .local_name = board.notices[r].local_name});
  auto connected = collective::connect(
      std::move(group), *std::move(listener),
      {.call_timeout = std::chrono::seconds(60), .security = security_of(crew.transport)});
  if (!connected) die(connected.error());
  return *std::move(connected);
}

}  // namespace

void die(const Error& error) {
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, error.message);
  std::_Exit(1);
}

Transport transport_of(const std::string& name) {
  if (name == "tls") return Transport::tls;
  if (name == "ucx") return Transport::ucx;
  return name == "tcp" ? Transport::tcp : Transport::automatic;
}

bool run_ranks(const Crew& crew, const std::function<void(Communicator&)>& work) {
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* board = new (memory) Board{};
  std::vector<pid_t> children;
  for (std::uint32_t rank = 0; rank < crew.ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      {
        const auto communicator = connect(*board, rank, crew);
        work(*communicator);
      }
      std::fflush(stdout);
      std::_Exit(0);
    }
    children.push_back(child);
  }
  bool sound = true;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) fmt::print(stderr, "a rank ended by signal {}\n", WTERMSIG(status));
    sound = sound && status == 0;
  }
  ::munmap(memory, sizeof(Board));
  return sound;
}

}  // namespace muster::benchmarks
