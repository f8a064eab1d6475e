#include "muster/net/trust.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::net {

Result<std::unique_ptr<Trust>> Trust::read(const std::string& ca_cert_path, const std::string& crl_path) {
  std::unique_ptr<Trust> trust(
      new Trust({.field = "ca_cert_path", .path = ca_cert_path}, {.field = "crl_path", .path = crl_path}));
  MUSTER_TRY(trust->authorities_, read_authorities(trust->ca_));
  if (!crl_path.empty()) {
    MUSTER_TRY(trust->crls_, read_crls(trust->crl_));
  }
  trust->renew_store();
  return trust;
}

void Trust::renew_store() const {
  std::shared_ptr<X509_STORE> store(X509_STORE_new(), X509_STORE_free);
  for (const auto& authority : authorities_) X509_STORE_add_cert(store.get(), authority.get());
  for (const auto& crl : crls_) X509_STORE_add_crl(store.get(), crl.get());
  if (!crls_.empty()) X509_STORE_set_flags(store.get(), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  snapshot_ = {.store = std::move(store), .generation = snapshot_.generation + 1};
}

Result<Trust::Snapshot> Trust::current() const {
  const std::lock_guard lock(mutex_);
  bool is_other = ca_file_.has_changed() && read_authorities_again();
  if (!crl_.path.empty() && crl_file_.has_changed()) is_other = read_crls_again() || is_other;
  if (is_other) renew_store();
  if (crl_problem_)
    return fail(Code::refused, fmt::format("the revocation list cannot be used: {}", crl_problem_->message));
  return snapshot_;
}

std::vector<openssl::Certificate> Trust::authorities() const {
  const std::lock_guard lock(mutex_);
  std::vector<openssl::Certificate> shared;
  for (const auto& authority : authorities_) {
    X509_up_ref(authority.get());
    shared.emplace_back(authority.get());
  }
  return shared;
}

// What the file named before is trusted until it can be read: nothing has revoked it.
bool Trust::read_authorities_again() const {
  auto read = read_authorities(ca_);
  if (!read) {
    ca_file_.look_again();
    if (!std::exchange(ca_is_broken_, true))
      log::error(fmt::format("{}: the authorities of before are believed until it can be read",
                             read.error().message));
    return false;
  }
  authorities_ = *std::move(read);
  ca_is_broken_ = false;
  log::info(fmt::format("read {} again: {} authorities", ca_.name(), authorities_.size()));
  return true;
}

bool Trust::read_crls_again() const {
  auto read = read_crls(crl_);
  if (!read) {
    crl_file_.look_again();  // it may be in the middle of being written
    if (!crl_problem_)
      log::error(fmt::format("{}: no new peer is admitted until it can be read", read.error().message));
    crl_problem_ = read.error();
    return false;
  }
  crls_ = *std::move(read);
  crl_problem_.reset();
  log::info(fmt::format("read {} again: {} revocation lists", crl_.name(), crls_.size()));
  return true;
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
