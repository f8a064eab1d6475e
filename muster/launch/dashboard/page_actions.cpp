#include "muster/launch/dashboard/page_actions.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <charconv>

namespace muster::launch {
namespace {

constexpr const char* token_header = "x-muster-token";
constexpr Duration time_between_actions = std::chrono::milliseconds(500);

std::string value_in(const HttpRequest& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::optional<PageAction::Kind> kind_of(std::string_view name) {
  if (name == "save") return PageAction::Kind::save;
  if (name == "stop") return PageAction::Kind::stop;
  if (name == "restart") return PageAction::Kind::restart;
  return std::nullopt;
}

}  // namespace

Result<std::string> new_page_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno("cannot draw a token for the page", errno);
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool are_equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

std::string to_string(const PageAction& action) {
  switch (action.kind) {
    case PageAction::Kind::save:
      return "asked on this page: save behind the step under way";
    case PageAction::Kind::stop:
      return "asked on this page: stop the training behind the step under way";
    case PageAction::Kind::restart:
      return fmt::format("asked on this page: restart rank {}", action.rank);
  }
  return "";
}

// A page of another site can neither read the token nor send this header without being asked about it first.
PageActions::Checked PageActions::check(const HttpRequest& request, TimePoint now) {
  const auto refused = [](int status, std::string reason) {
    return Checked{.refused = refusal(status, std::move(reason))};
  };
  if (request.method != "POST") return refused(405, "an action is a POST");
  if (options_.token.empty()) return refused(403, options_.why_not);
  const std::string_view given = request.header(token_header);
  if (given.empty())
    return refused(401, "the token is missing: open the link that `muster run` has printed, with all of it");
  if (!are_equal_secrets(given, options_.token))
    return refused(403, "this is not the token of this job: open the link that `muster run` has printed");
  const auto kind = kind_of(value_in(request, "do"));
  if (!kind) return refused(400, "do is save, stop or restart");
  PageAction action{.kind = *kind};
  if (*kind != PageAction::Kind::restart && !options_.reaches_workers)
    return refused(409, "the workers of this job have several launchers, and do not look for requests");
  if (*kind == PageAction::Kind::restart) {
    const std::string rank = value_in(request, "rank");
    const auto [end, error] = std::from_chars(rank.data(), rank.data() + rank.size(), action.rank);
    if (error != std::errc{} || end != rank.data() + rank.size() || action.rank >= options_.worker_num)
      return refused(400, fmt::format("rank is a number below {}", options_.worker_num));
    if (!options_.restarts)
      return refused(409,
                     "processes of this job are not started again: `muster run --max-restarts N` does that");
  }
  if (last_at_ && now - *last_at_ < time_between_actions)
    return refused(429, "another action was asked for just now: try again in a second");
  last_at_ = now;
  return {.action = action};
}

Result<> PageActions::ask_workers(const PageAction& action) {
  if (action.kind == PageAction::Kind::save) ++saves_;
  if (action.kind == PageAction::Kind::stop) ++stops_;
  const std::string text = fmt::format("save {} stop {}\n", saves_, stops_);
  return real_files().write(options_.folder + '/' + page_requests_name, std::as_bytes(std::span(text)));
}

}  // namespace muster::launch
