#include "muster/train/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>

#include "muster/base/base.h"
#include "muster/train/session.h"

namespace muster::train {
namespace {

int fail_with(const std::string& reason, int exit_code) {
  log::error(reason);
  if (Session* const session = Session::current()) session->note_reason(reason);
  return exit_code;
}

}  // namespace

int run(const std::function<void()>& body) {
  if (real_environment().get("MS_ROLE")) {
    const auto role = init();
    if (!role) return fail_with(role.error().message, role.error().exit_code);
    if (*role != Role::worker) return 0;
  }
  try {
    body();
    return 0;
  } catch (const std::exception& exception) {
    Session* const session = Session::current();
    const auto failure = session != nullptr ? session->failure() : std::nullopt;
    return fail_with(exception.what(), failure ? failure->exit_code : 1);
  }
}

std::uint32_t rank() { return Session::current() ? get_rank().value() : 0; }
std::uint32_t world_size() { return Session::current() ? get_group_size().value() : 1; }

}  // namespace muster::train
