// A small HTTP/1.1 server for pages and numbers: one thread, every request answered at once or kept as a
// stream of server-sent events. Each connection is one request.
//
// Against floods: a request has 2 s and 8 KiB, an answer 10 s to be read. There are at most 64 connections,
// of which the oldest without a whole request makes room for one more, and 16 streams. The time of a request
// counts from its connection on, with its TLS.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/base/base.h"
#include "muster/net/net.h"

namespace muster::launch {

struct HttpRequest {
  std::string method = {};
  std::string path = {};                                   // "/logs", percent signs decoded
  std::map<std::string, std::string> query = {};           // decoded; the last of a name counts
  std::map<std::string, std::string> headers = {};         // names in lower case
  std::string_view header(const std::string& name) const;  // empty: there is none
};
// An error where the text is no request.
Result<HttpRequest> parse_request(std::string_view text);

struct HttpResponse {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
  bool is_stream = false;  // what publish() says follows the body, until the stream ends
};
HttpResponse refusal(int status, std::string reason);

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  // "9400", of this host alone, or "10.0.0.5:9400"; port 0 takes a free one. "" is port 0 of this host.
  static Result<HttpServer> open(const std::string& where);
  // Nowhere: nothing comes.
  static HttpServer closed() { return HttpServer(std::nullopt); }
  net::Address address() const { return listener_ ? listener_->address() : net::Address{}; }

  // From here on every connection is HTTPS: `security` has certificates, and asks browsers for none.
  void encrypt(std::shared_ptr<const net::Security> security) { security_ = std::move(security); }
  bool is_encrypted() const { return security_ != nullptr; }

  // For a child of fork(): a copy to be made before, and what the child makes of it.
  Result<net::Descriptor> duplicate() const {
    return listener_ ? listener_->duplicate() : Result<net::Descriptor>(net::Descriptor());
  }
  void adopt(net::Descriptor copy);

  // Serves until then, or until `wakes` is readable; -1: nothing wakes it.
  void serve_until(TimePoint until, int wakes, const Handler& handler, const Clock& clock);
  // To all streams. `event` is a whole server-sent event. One that is `replaceable` is left out where the
  // reader has not taken the last ones yet.
  void publish(const std::shared_ptr<const std::string>& event, bool is_replaceable, const Clock& clock);
  std::size_t streams() const;
  // Ends the streams, once they have what was published; waits for that no longer than `until`.
  void finish(TimePoint until, const Clock& clock);

 private:
  struct Connection {
    net::Socket socket;
    TimePoint deadline;  // of its request, or of its answer
    std::string request = {};
    bool shakes_hands = false;  // TLS is not through
    bool is_answered = false;
    bool is_stream = false;
    std::deque<std::shared_ptr<const std::string>> unsent = {};
    std::size_t sent_bytes = 0;  // of the first of them
    bool is_over = false;
  };

  explicit HttpServer(std::optional<net::TcpListener> listener) : listener_(std::move(listener)) {}
  void accept(const Clock& clock);
  void shake_hands(Connection& connection, const Clock& clock);
  void receive(Connection& connection, const Handler& handler, const Clock& clock);
  void answer(Connection& connection, HttpResponse response, const Clock& clock);
  void send(Connection& connection, const Clock& clock);
  void turn(TimePoint until, int wakes, const Handler& handler, const Clock& clock);
  void close_what_is_over(TimePoint now);

  std::optional<net::TcpListener> listener_;
  std::shared_ptr<const net::Security> security_;
  std::list<Connection> connections_;
};

}  // namespace muster::launch
