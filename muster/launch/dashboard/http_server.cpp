#include "muster/launch/dashboard/http_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <span>
#include <utility>

namespace muster::launch {
namespace {

constexpr std::size_t request_bytes_max = 8192;
constexpr std::size_t connections_max = 64;
constexpr std::size_t streams_max = 16;
constexpr std::size_t unsent_events_max = 256;
constexpr Duration request_limit = std::chrono::seconds(2);
constexpr Duration reading_limit = std::chrono::seconds(10);
// No script, style, picture or connection but this server's own; no other page may show this one.
constexpr std::string_view safety =
    "Content-Security-Policy: default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri "
    "'none'; form-action 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n";

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 429:
      return "Too Many Requests";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

std::string lower_case(std::string_view text) {
  std::string made(text);
  for (char& c : made)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return made;
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// What stands before `separator`, which goes from `rest` as well.
std::string_view take_before(std::string_view& rest, std::string_view separator) {
  const auto at = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(std::min(rest.size(), at + separator.size()));
  return taken;
}

Result<std::string> decoded(std::string_view text, bool plus_is_space) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      made += plus_is_space && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() < 2 || error != std::errc{} || end != digits.data() + 2)
      return fail(Code::invalid_argument, "a percent sign is followed by two hexadecimal digits");
    made += static_cast<char>(value);
    i += 2;
  }
  return made;
}

Result<> read_target(HttpRequest& request, std::string_view target) {
  const std::string_view path = take_before(target, "?");
  MUSTER_TRY(request.path, decoded(path, false));
  if (!request.path.starts_with('/')) return fail(Code::invalid_argument, "a path begins with /");
  while (!target.empty()) {
    std::string_view pair = take_before(target, "&");
    const std::string_view name = take_before(pair, "=");
    MUSTER_TRY(std::string key, decoded(name, true));
    MUSTER_TRY(request.query[std::move(key)], decoded(pair, true));
  }
  return {};
}

std::string head_of(const HttpResponse& response) {
  const std::string length =
      response.is_stream ? "" : fmt::format("Content-Length: {}\r\n", response.body.size());
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n{}{}Connection: close\r\n\r\n", response.status,
                     reason_of(response.status), response.type, length, safety);
}

}  // namespace

std::string_view HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

HttpResponse refusal(int status, std::string reason) {
  return {.status = status, .body = std::move(reason) + "\n"};
}

Result<HttpRequest> parse_request(std::string_view text) {
  HttpRequest request;
  std::string_view line = take_before(text, "\r\n");
  request.method = std::string(take_before(line, " "));
  const std::string_view target = take_before(line, " ");
  if (!line.starts_with("HTTP/1.")) return fail(Code::invalid_argument, "this is no request of HTTP/1");
  MUSTER_TRY_VOID(read_target(request, target));
  while (!text.empty()) {
    std::string_view header = take_before(text, "\r\n");
    if (header.empty()) break;
    const std::string_view name = take_before(header, ":");
    request.headers[lower_case(name)] = std::string(without_blanks(header));
  }
  return request;
}

Result<HttpServer> HttpServer::open(const std::string& where) {
  const bool is_port = where.find_first_not_of("0123456789") == std::string::npos;
  const std::string full = where.empty() ? "127.0.0.1:0" : is_port ? "127.0.0.1:" + where : where;
  const auto named = net::parse_host_port(full);
  if (!named)
    return fail(Code::invalid_argument,
                fmt::format("'{}' is no port and no HOST:PORT: 9400, 10.0.0.5:9400: {}", where,
                            named.error().message));
  MUSTER_TRY(const auto ips, net::resolve(named->host));
  MUSTER_TRY(net::TcpListener listener, net::TcpListener::open({.ip = ips.front(), .port = named->port}));
  return HttpServer(std::move(listener));
}

void HttpServer::adopt(net::Descriptor copy) {
  if (listener_) listener_ = net::TcpListener::adopt(std::move(copy), listener_->address());
}

void HttpServer::serve_until(TimePoint until, int wakes, const Handler& handler, const Clock& clock) {
  while (clock.now() < until) {
    turn(until, wakes, handler, clock);
    pollfd woken{.fd = wakes, .events = POLLIN, .revents = 0};
    if (wakes >= 0 && ::poll(&woken, 1, 0) > 0) return;
  }
}

// Waits for whatever comes first, and does it.
void HttpServer::turn(TimePoint until, int wakes, const Handler& handler, const Clock& clock) {
  std::vector<pollfd> polled = {{.fd = listener_ ? listener_->fd() : -1, .events = POLLIN, .revents = 0},
                                {.fd = wakes, .events = POLLIN, .revents = 0}};
  for (const Connection& each : connections_) {
    const short awaited = each.shakes_hands ? each.socket.awaited_events() : POLLIN;
    polled.push_back({.fd = each.socket.fd(), .events = awaited, .revents = 0});
    if (!each.unsent.empty()) polled.back().events = POLLIN | POLLOUT;
    if (!each.is_stream || !each.unsent.empty()) until = std::min(until, each.deadline);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
  ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000)));
  auto ready = polled.begin() + 2;
  for (Connection& each : connections_) {
    const short events = (ready++)->revents;
    const bool was_shaking = each.shakes_hands && events != 0;
    if (was_shaking) shake_hands(each, clock);
    const bool may_have_come = was_shaking || (events & (POLLIN | POLLHUP | POLLERR)) != 0;
    if (may_have_come && !each.shakes_hands && !each.is_over) receive(each, handler, clock);
    if (!each.is_over && !each.unsent.empty()) send(each, clock);
  }
  if ((polled.front().revents & POLLIN) != 0) accept(clock);
  close_what_is_over(clock.now());
}

void HttpServer::accept(const Clock& clock) {
  net::Arrival arrival = listener_->accept();
  if (!arrival.socket) return;
  connections_.push_back({.socket = *std::move(arrival.socket), .deadline = clock.now() + request_limit});
  if (security_ != nullptr) {
    Connection& made = connections_.back();
    made.shakes_hands = true;
    made.is_over = !made.socket.begin_tls(
        {.security = security_, .listens = true, .peer_name = "a browser", .serves_anyone = true});
  }
  if (connections_.size() <= connections_max) return;
  const auto oldest = std::find_if(connections_.begin(), std::prev(connections_.end()),
                                   [](const Connection& each) { return !each.is_answered; });
  if (oldest != std::prev(connections_.end()))
    oldest->is_over = true;
  else if (security_ != nullptr)
    connections_.back().is_over = true;
  else
    answer(connections_.back(), refusal(503, "there are too many connections: try again later"), clock);
}

void HttpServer::shake_hands(Connection& connection, const Clock& clock) {
  const auto through = connection.socket.shake_hands();
  connection.shakes_hands = !through.value_or(false);
  if (through) return;
  if (through.error().code != Code::corrupt) {
    connection.is_over = true;
    return;
  }
  connection.socket.end_tls();  // it speaks no TLS
  connection.shakes_hands = false;
  answer(connection, refusal(400, "this page is encrypted: its address begins with https://"), clock);
}

// What a client does wrong ends its own connection alone.
void HttpServer::receive(Connection& connection, const Handler& handler, const Clock& clock) {
  std::array<char, 2048> bytes;
  const iovec piece{bytes.data(), bytes.size()};
  while (true) {
    const auto size = connection.socket.receive_some(std::span(&piece, 1));
    if (!size) connection.is_over = true;
    if (!size || connection.is_answered) return;  // what comes behind a request is nothing
    connection.request.append(bytes.data(), *size);
    if (connection.request.find("\r\n\r\n") != std::string::npos) break;
    if (connection.request.size() > request_bytes_max) connection.is_over = true;
    if (connection.is_over || *size == 0) return;
  }
  const auto request = parse_request(connection.request);
  answer(connection, request ? handler(*request) : refusal(400, request.error().message), clock);
}

void HttpServer::answer(Connection& connection, HttpResponse response, const Clock& clock) {
  if (response.is_stream && streams() >= streams_max)
    response = refusal(503, "there are too many pages of this job: close one");
  connection.is_answered = true;
  connection.is_stream = response.is_stream;
  connection.deadline = clock.now() + reading_limit;
  connection.request.clear();
  connection.unsent.push_back(std::make_shared<const std::string>(head_of(response) + response.body));
  send(connection, clock);
}

void HttpServer::send(Connection& connection, const Clock& clock) {
  while (!connection.unsent.empty()) {
    const std::string& first = *connection.unsent.front();
    const iovec piece{const_cast<char*>(first.data()) + connection.sent_bytes,
                      first.size() - connection.sent_bytes};
    const auto sent = connection.socket.send_some(std::span(&piece, 1));
    if (!sent) connection.is_over = true;
    if (!sent || *sent == 0) return;
    connection.deadline = clock.now() + reading_limit;
    connection.sent_bytes += *sent;
    if (connection.sent_bytes < first.size()) return;
    connection.sent_bytes = 0;
    connection.unsent.pop_front();
  }
  if (connection.is_stream) return;
  connection.socket.finish_sending();
  connection.is_over = true;
}

void HttpServer::close_what_is_over(TimePoint now) {
  connections_.remove_if([now](const Connection& each) {
    const bool waits = !each.is_stream || !each.unsent.empty();
    return each.is_over || (waits && now >= each.deadline);
  });
}

void HttpServer::publish(const std::shared_ptr<const std::string>& event, bool is_replaceable,
                         const Clock& clock) {
  for (Connection& each : connections_) {
    if (!each.is_stream || each.is_over || (is_replaceable && each.unsent.size() > 2)) continue;
    if (each.unsent.empty()) each.deadline = clock.now() + reading_limit;
    each.unsent.push_back(event);
    each.is_over = each.unsent.size() > unsent_events_max;
  }
}

std::size_t HttpServer::streams() const {
  return static_cast<std::size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const Connection& each) { return each.is_stream && !each.is_over; }));
}

void HttpServer::finish(TimePoint until, const Clock& clock) {
  const Handler none = [](const HttpRequest&) { return refusal(503, "the job has ended"); };
  const auto has_unsent = [this] {
    return std::any_of(connections_.begin(), connections_.end(),
                       [](const Connection& each) { return !each.unsent.empty(); });
  };
  while (has_unsent() && clock.now() < until) turn(until, -1, none, clock);
  for (Connection& each : connections_) each.socket.finish_sending();
  connections_.clear();
}

}  // namespace muster::launch
