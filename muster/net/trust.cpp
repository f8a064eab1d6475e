#include "muster/net/trust.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::net {
namespace {

constexpr auto look_interval = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<Trust>> Trust::read(const std::string& ca_cert_path, const std::string& crl_path) {
  std::unique_ptr<Trust> trust(
      new Trust({.field = "ca_cert_path", .path = ca_cert_path}, {.field = "crl_path", .path = crl_path}));
  MUSTER_TRY(trust->authorities_, read_authorities(trust->ca_));
  if (crl_path.empty()) {
    trust->snapshot_ = {.store = trust->make_store({}), .generation = 1};
    return trust;
  }
  trust->seen_ = trust->look();
  MUSTER_TRY_VOID(trust->read_again());
  return trust;
}

std::shared_ptr<X509_STORE> Trust::make_store(const std::vector<openssl::Crl>& crls) const {
  std::shared_ptr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  for (const auto& authority : authorities_) X509_STORE_add_cert(store.get(), authority.get());
  for (const auto& crl : crls) X509_STORE_add_crl(store.get(), crl.get());
  if (!crls.empty()) X509_STORE_set_flags(store.get(), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return store;
}

std::optional<Trust::FileState> Trust::look() const {
  struct stat status {};
  if (::stat(crl_.path.c_str(), &status) != 0) return std::nullopt;
  return FileState{.inode = status.st_ino, .size_bytes = status.st_size, .changed = status.st_mtim};
}

Result<> Trust::read_again() const {
  MUSTER_TRY(crls_, read_crls(crl_));
  snapshot_ = {.store = make_store(crls_), .generation = snapshot_.generation + 1};
  return {};
}

Result<Trust::Snapshot> Trust::current() const {
  const std::lock_guard lock(mutex_);
  if (crl_.path.empty()) return snapshot_;
  const TimePoint now = real_clock().now();
  if (now >= next_look_) {
    next_look_ = now + look_interval;
    const auto found = look();
    // A broken file is read again and again: it may be in the middle of being written.
    if (found != seen_ || !found || problem_) {
      seen_ = found;
      const bool was_good = !problem_;
      const auto read = read_again();
      problem_ = read ? std::nullopt : std::optional(read.error());
      if (read)
        log::info(fmt::format("read {} again: {} revocation lists", crl_.name(), crls_.size()));
      else if (was_good)
        log::error(fmt::format("{}: nobody new is let in until it can be read", read.error().message));
    }
  }
  if (problem_)
    return fail(Code::refused, fmt::format("the revocation list cannot be used: {}", problem_->message));
  return snapshot_;
}

std::vector<std::string> Trust::warnings(int expire_warning_days) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const auto& authority : authorities_) {
    const std::string subject = subject_of(authority.get());
    if (const int days = days_left(X509_get0_notAfter(authority.get())); days < expire_warning_days)
      texts.push_back(fmt::format("{}: the certificate ({}) {} on {}", ca_.name(), subject,
                                  days < 0 ? "has expired" : "expires",
                                  time_text(X509_get0_notAfter(authority.get()))));
    if (crl_.path.empty()) continue;
    const auto own = std::ranges::find_if(crls_, [&](const openssl::Crl& crl) {
      return X509_NAME_cmp(X509_CRL_get_issuer(crl.get()), X509_get_subject_name(authority.get())) == 0;
    });
    const ASN1_TIME* end = own == crls_.end() ? nullptr : X509_CRL_get0_nextUpdate(own->get());
    if (own == crls_.end())
      texts.push_back(fmt::format("{} has no revocation list of {}: whatever it signed is refused",
                                  crl_.name(), subject));
    else if (end != nullptr && days_left(end) < 0)
      texts.push_back(
          fmt::format("{}: the revocation list of {} has expired on {}: whatever it signed is "
                      "refused",
                      crl_.name(), subject, time_text(end)));
  }
  return texts;
}

}  // namespace muster::net
