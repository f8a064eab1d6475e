// Actions of the page: what who has its token may ask of a job, and which requests are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/base/base.h"
#include "muster/launch/dashboard/http_server.h"

namespace muster::launch {

// In the folder of the run: how often the workers were asked for what.
inline constexpr const char* page_requests_name = "requests";

// 32 hexadecimal digits that cannot be guessed.
Result<std::string> new_page_token();
// Takes equally long whatever differs.
bool are_equal_secrets(std::string_view a, std::string_view b);

struct PageAction {
  enum class Kind : std::uint8_t { save, stop, restart };
  Kind kind = Kind::save;
  std::uint32_t rank = 0;  // of restart
  friend bool operator==(const PageAction&, const PageAction&) = default;
};

class PageActions {
 public:
  struct Options {
    std::string token = {};        // empty: nothing may be done
    std::string why_not = {};      // then, for people
    std::string folder = {};       // of the run: `requests` is there
    bool reaches_workers = false;  // all of them look for requests
    bool restarts = false;         // the launcher starts processes again
    std::uint32_t worker_num = 0;
  };
  explicit PageActions(Options options) : options_(std::move(options)) {}

  // The action that a POST to /act asks for; or the answer that refuses it.
  struct Checked {
    std::optional<PageAction> action = {};
    HttpResponse refused = {};
  };
  Checked check(const HttpRequest& request, TimePoint now);
  // For rank 0 of the job, which looks at that file.
  Result<> ask_workers(const PageAction& action);
  bool may_act() const { return !options_.token.empty(); }
  bool restarts() const { return options_.restarts; }

 private:
  Options options_;
  std::uint64_t saves_ = 0;
  std::uint64_t stops_ = 0;
  std::optional<TimePoint> last_at_ = {};
};

// "a person asks to save behind the step under way".
std::string to_string(const PageAction& action);

}  // namespace muster::launch
