// What status.h says of PyTorch's ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include "muster/json/json.h"
#include "muster/launch/status.h"
#include "muster/launch/table.h"
#include "muster/net/net.h"

namespace muster::launch {
namespace {
namespace torch_ranks {

using nlohmann::json;

constexpr std::string_view name_begin = "@muster-torch/";  // in /proc/net/unix, where @ stands for a zero
constexpr std::size_t answer_bytes_max = 1 << 20;
constexpr auto answer_longest = std::chrono::seconds(5);  // of all ranks together
const std::string unknown_job = "an unknown store";

// "@muster-torch/<process>/<rank>".
std::optional<TorchRank> parse(std::string_view name) {
  if (!name.starts_with(name_begin)) return {};
  name.remove_prefix(name_begin.size());
  TorchRank made;
  const char* const end = name.data() + name.size();
  const auto process = std::from_chars(name.data(), end, made.process);
  if (process.ec != std::errc() || process.ptr == end || *process.ptr != '/') return {};
  const auto rank = std::from_chars(process.ptr + 1, end, made.rank);
  if (rank.ec != std::errc() || rank.ptr != end) return {};
  return made;
}

// Those that listen: a connection has the same name, and is another line.
std::vector<TorchRank> named() {
  const auto bytes = real_files().read("/proc/net/unix");
  if (!bytes) return {};
  std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  std::map<pid_t, TorchRank> found;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (const auto rank = parse(line.substr(line.find_last_of(' ') + 1))) found.emplace(rank->process, *rank);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<TorchRank> ranks;
  for (auto& [process, rank] : found) ranks.push_back(std::move(rank));
  return ranks;
}

// Anybody may take such a name.
bool is_own(const net::Descriptor& socket) {
  ucred other{};
  socklen_t size = sizeof(other);
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 && other.uid == ::geteuid();
}

// None: no process listens there any more, or it is another user's.
std::optional<net::Descriptor> reach(const TorchRank& rank) {
  net::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("{}{}/{}", name_begin.substr(1), rank.process, rank.rank);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a zero: an abstract name
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return {};
  if (!is_own(socket)) return {};
  return socket;
}

// What comes until the other side closes; empty where that does not come in time.
std::string read_answer(const net::Descriptor& socket, TimePoint until, const Clock& clock) {
  std::string text;
  char piece[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock.now());
    pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) return {};
    const ssize_t got = ::read(socket.get(), piece, sizeof(piece));
    if (got == 0) return text;
    if (got < 0 || text.size() + static_cast<std::size_t>(got) > answer_bytes_max) return {};
    text.append(piece, static_cast<std::size_t>(got));
  }
}

struct Job {
  std::uint64_t size = 0;
  std::vector<std::pair<TorchRank, json>> ranks;  // null: no answer
};
using Jobs = std::map<std::string, Job>;  // by their master

// Of a rank that says nothing the job is not known, unless there is only one.
Result<Jobs> jobs_of(const std::vector<TorchRank>& ranks, const std::string& master) {
  Jobs jobs;
  std::vector<TorchRank> silent;
  for (const TorchRank& rank : ranks) {
    const auto parsed = muster::json::parse(rank.answer, "the answer of a rank");
    const json said = parsed ? *parsed : json();
    if (!said.is_object() || !said.contains("groups")) {
      silent.push_back(rank);
      continue;
    }
    const auto where = said.value("master", unknown_job);
    if (!master.empty() && where != master) continue;
    jobs[where].size = said.value("size", std::uint64_t{0});
    jobs[where].ranks.emplace_back(rank, said);
  }
  for (const TorchRank& rank : silent)
    jobs[jobs.size() == 1 ? jobs.begin()->first : unknown_job].ranks.emplace_back(rank, nullptr);
  if (jobs.empty())
    return fail(Code::not_found,
                fmt::format("no rank of a PyTorch job over Muster{} runs on this host as this user",
                            master.empty() ? "" : " with its store at " + master));
  for (auto& [where, job] : jobs)
    std::ranges::sort(job.ranks, {}, [](const auto& rank) { return rank.first.rank; });
  return jobs;
}

std::string doing(const json& group) {
  const auto call = group.value("call", std::string());
  if (call.empty()) return fmt::format("in no call, {} finished", group.value("finished", std::uint64_t{0}));
  const bool is_message = group.contains("peer");
  return fmt::format("in {} {} for {:.3g} s", call,
                     is_message
                         ? fmt::format("{} rank {}", call == "send" ? "to" : "from", group.value("peer", 0))
                         : std::to_string(group.value("number", std::uint64_t{0})),
                     group.value("for_s", 0.0));
}

std::string awaited(const json& group) {
  const auto ranks = group.value("waits_for", std::vector<std::uint32_t>());
  return ranks.empty() ? ""
                       : fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::vector<std::vector<std::string>> rows_of(const TorchRank& rank, const json& said) {
  const std::string name = std::to_string(rank.rank), process = std::to_string(rank.process);
  if (said.is_null())
    return {{name, process, "", "does not answer: it is stopped, or busy in one long call", ""}};
  std::vector<std::vector<std::string>> rows;
  for (const json& group : said.at("groups"))
    if (rows.empty() || group.contains("call"))
      rows.push_back({name, process, group.value("name", std::string()), doing(group), awaited(group)});
  return rows;
}

}  // namespace torch_ranks
}  // namespace

std::vector<TorchRank> find_torch_ranks(TorchQuestion question, const Clock& clock) {
  std::vector<std::pair<TorchRank, net::Descriptor>> asked;
  const std::string_view words = question == TorchQuestion::dump     ? "dump\n"
                                 : question == TorchQuestion::stacks ? "stacks\n"
                                                                     : "show\n";
  for (TorchRank& rank : torch_ranks::named()) {
    auto socket = torch_ranks::reach(rank);
    if (!socket) continue;
    static_cast<void>(
        ::send(socket->get(), words.data(), words.size(), MSG_NOSIGNAL));  // or it does not answer
    asked.emplace_back(std::move(rank), *std::move(socket));
  }
  const TimePoint until = clock.now() + torch_ranks::answer_longest;
  std::vector<TorchRank> ranks;
  for (auto& [rank, socket] : asked) {
    rank.answer = torch_ranks::read_answer(socket, until, clock);
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

Result<std::string> torch_status_text(const std::vector<TorchRank>& ranks, const std::string& master) {
  MUSTER_TRY(const auto jobs, torch_ranks::jobs_of(ranks, master));
  std::string text;
  for (const auto& [where, job] : jobs) {
    text += fmt::format("PyTorch job at {}: {} of {} ranks are on this host\n", where, job.ranks.size(),
                        job.size);
    std::vector<std::vector<std::string>> rows = {{"rank", "process", "group", "doing", "waits for"}};
    for (const auto& [rank, said] : job.ranks)
      for (auto& row : torch_ranks::rows_of(rank, said)) rows.push_back(std::move(row));
    text += table(rows);
    for (const auto& [rank, said] : job.ranks)
      if (said.is_object() && said.contains("dumped"))
        text += fmt::format("rank {}: {}\n", rank.rank, said.value("dumped", std::string()));
    for (const auto& [rank, said] : job.ranks)
      if (said.is_object() && said.contains("stacks"))
        text += fmt::format("rank {} (process {}):\n{}", rank.rank, rank.process,
                            printable(said.value("stacks", std::string()), LineBreaks::kept));
  }
  return text;
}

Result<std::string> torch_status_json(const std::vector<TorchRank>& ranks, const std::string& master) {
  MUSTER_TRY(const auto jobs, torch_ranks::jobs_of(ranks, master));
  auto made = torch_ranks::json::array();
  for (const auto& [where, job] : jobs) {
    auto shown = torch_ranks::json::array();
    for (const auto& [rank, said] : job.ranks)
      shown.push_back({{"rank", rank.rank}, {"process", rank.process}, {"said", said}});
    made.push_back({{"master", where}, {"size", job.size}, {"ranks", std::move(shown)}});
  }
  return torch_ranks::json{{"jobs", std::move(made)}}.dump(2, ' ', false,
                                                           torch_ranks::json::error_handler_t::replace) +
         "\n";
}

}  // namespace muster::launch
