#include "muster/net/tls_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "muster/net/certificate_files.h"

namespace muster::net {
namespace {

struct AlertText {
  int alert;
  bool is_about_certificate;
  std::string_view text;
};

constexpr AlertText alert_texts[] = {
    {SSL_AD_BAD_CERTIFICATE, true,
     "it is damaged, not yet valid, or not for this host or node (the other side's log says which)"},
    {SSL_AD_UNSUPPORTED_CERTIFICATE, true, "it is not for this purpose (extended key usage)"},
    {SSL_AD_CERTIFICATE_REVOKED, true, "it was revoked"},
    {SSL_AD_CERTIFICATE_EXPIRED, true, "it has expired"},
    {SSL_AD_CERTIFICATE_UNKNOWN, true, "it cannot be checked (the other side's log says why)"},
    {SSL_AD_UNKNOWN_CA, true, "its issuer is not one that the other side believes (ca_cert_path)"},
    {SSL_AD_ACCESS_DENIED, true, "access denied"},
    {SSL_AD_CERTIFICATE_REQUIRED, true, "none was shown"},
    {SSL_AD_HANDSHAKE_FAILURE, false,
     "nothing that both sides offer (cipher suites, certificates on one side and a token on the other)"},
    {SSL_AD_INSUFFICIENT_SECURITY, false, "keys or cipher suites are too weak"},
    {SSL_AD_DECRYPT_ERROR, false, "a signature or key is not the right one"},
    {SSL_AD_INTERNAL_ERROR, false,
     "the other side cannot check certificates now (its log says why: its revocation list may be broken)"},
    {SSL_AD_NO_RENEGOTIATION, false, "no renegotiation"},
};

bool is_about_token(int alert) {
  return alert == SSL_AD_ILLEGAL_PARAMETER || alert == SSL_AD_DECRYPT_ERROR ||
         alert == SSL_AD_HANDSHAKE_FAILURE || alert == SSL_AD_UNKNOWN_PSK_IDENTITY;
}

}  // namespace

std::string alert_words(int alert, const AlertContext& context) {
  if (alert == SSL_AD_PROTOCOL_VERSION)
    return fmt::format(
        "{} does not speak TLS 1.2 or 1.3, and this process does: it has to be configured on "
        "every process or on none",
        context.peer);
  if (!context.with_certificates && is_about_token(alert))
    return fmt::format("{} refused this process's token: it has another one, or certificates", context.peer);
  const auto* known = std::ranges::find(alert_texts, alert, &AlertText::alert);
  if (known == std::end(alert_texts))
    return fmt::format("{} ended TLS: {}", context.peer, SSL_alert_desc_string_long(alert));
  if (known->is_about_certificate)
    return fmt::format("{} refused this process's certificate: {}", context.peer, known->text);
  return fmt::format("{} ended TLS: {}", context.peer, known->text);
}

std::string verify_words(X509_STORE_CTX* context) {
  const int error = X509_STORE_CTX_get_error(context);
  const X509* certificate = X509_STORE_CTX_get_current_cert(context);
  const std::string subject = certificate == nullptr ? "unknown" : subject_of(certificate);
  const std::string issuer =
      certificate == nullptr ? "unknown" : name_text(X509_get_issuer_name(certificate));
  switch (error) {
    case X509_V_ERR_CERT_REVOKED:
      return fmt::format("certificate revoked ({})", subject);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("certificate has expired on {} ({})", time_text(X509_get0_notAfter(certificate)),
                         subject);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("certificate is not valid before {} ({})",
                         time_text(X509_get0_notBefore(certificate)), subject);
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
      return fmt::format("crl_path has no revocation list of its issuer {} ({})", issuer, subject);
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return fmt::format("the revocation list of its issuer {} in crl_path has expired ({})", issuer,
                         subject);
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return fmt::format("the revocation list of its issuer {} in crl_path is not yet valid ({})", issuer,
                         subject);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format("its issuer {} is not in ca_cert_path ({})", issuer, subject);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return fmt::format("it is self-signed, and not in ca_cert_path ({})", subject);
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return fmt::format("it comes from another authority than those in ca_cert_path ({})", subject);
    default:
      return fmt::format("{} ({})", X509_verify_cert_error_string(error), subject);
  }
}

}  // namespace muster::net
