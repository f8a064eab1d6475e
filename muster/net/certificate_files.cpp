#include "muster/net/certificate_files.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <openssl/pem.h>

#include <algorithm>
#include <optional>

#include "muster/net/credentials.h"

namespace muster::net {
namespace {

constexpr std::size_t file_size_limit_bytes = 4 << 20;
constexpr long mac_iteration_limit = 10'000'000;  // seconds, not hours, for a file that asks for more
constexpr int names_max = 1024;

Result<std::string> read_bounded(const CertificateSource& source) {
  if (source.path.empty()) return fail(Code::invalid_argument, fmt::format("{} is empty", source.field));
  auto file = read_small_file(source.path, file_size_limit_bytes);
  if (!file) return fail(file.error().code, fmt::format("{}: {}", source.field, file.error().message));
  return std::move(file->text);
}

// Reading PEM ends with the error that there is no more.
bool is_end_of_pem() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

template <class Object, class Read>
Result<std::vector<Object>> read_all(const CertificateSource& source, std::string_view what, Read read) {
  MUSTER_TRY(const auto bytes, read_bounded(source));
  const openssl::Bio bio = openssl::reader(bytes);
  std::vector<Object> objects;
  ERR_clear_error();
  while (Object object{read(bio.get())}) objects.push_back(std::move(object));
  if (!is_end_of_pem())
    return fail(Code::corrupt, fmt::format("{}: {} {} is damaged", source.name(), what, objects.size() + 1));
  if (objects.empty()) return fail(Code::corrupt, fmt::format("{} holds no {}", source.name(), what));
  return objects;
}

Result<openssl::Package> parse_package(const CertificateSource& source) {
  MUSTER_TRY(const auto bytes, read_bounded(source));
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data());
  const auto* const end = at + bytes.size();
  ERR_clear_error();
  openssl::Package package(d2i_PKCS12(nullptr, &at, static_cast<long>(bytes.size())));
  ERR_clear_error();
  if (!package || at != end)
    return fail(Code::corrupt, fmt::format("{} is no whole PKCS#12 file", source.name()));
  return package;
}

Result<> check_password(const CertificateSource& source, PKCS12* package, const std::string& password) {
  if (PKCS12_mac_present(package) == 0) return {};
  const ASN1_INTEGER* iterations = nullptr;
  PKCS12_get0_mac(nullptr, nullptr, nullptr, &iterations, package);
  if (iterations != nullptr &&
      (ASN1_INTEGER_get(iterations) < 0 || ASN1_INTEGER_get(iterations) > mac_iteration_limit))
    return fail(Code::corrupt, fmt::format("{} wants its password hashed more than {} times", source.name(),
                                           mac_iteration_limit));
  if (PKCS12_verify_mac(package, password.c_str(), static_cast<int>(password.size())) == 1) return {};
  // An absent and an empty password are two different things in this format.
  if (password.empty() && PKCS12_verify_mac(package, nullptr, 0) == 1) return {};
  ERR_clear_error();
  return fail(Code::refused, fmt::format("{} cannot be opened: the password is {}", source.name(),
                                         password.empty() ? "empty, and the file has another" : "wrong"));
}

Result<> check_dates(const CertificateSource& source, const X509* certificate) {
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
    return fail(Code::refused, fmt::format("{}: the certificate ({}) is not valid before {}; this host's "
                                           "clock says that is to come",
                                           source.name(), subject_of(certificate),
                                           time_text(X509_get0_notBefore(certificate))));
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
    return fail(Code::refused,
                fmt::format("{}: the certificate ({}) has expired on {}", source.name(),
                            subject_of(certificate), time_text(X509_get0_notAfter(certificate))));
  return {};
}

std::optional<std::string> printable(const ASN1_STRING* text) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(text));
  std::string copy(data, static_cast<std::size_t>(ASN1_STRING_length(text)));
  // A name with a zero inside is a trick, not a name.
  if (!std::ranges::all_of(copy, [](char c) { return c > ' ' && c < 0x7f; })) return std::nullopt;
  return copy;
}

std::string address_text(const ASN1_OCTET_STRING* address) {
  const int size = ASN1_STRING_length(address);
  char text[INET6_ADDRSTRLEN] = {};
  if (size == 4) ::inet_ntop(AF_INET, ASN1_STRING_get0_data(address), text, sizeof text);
  if (size == 16) ::inet_ntop(AF_INET6, ASN1_STRING_get0_data(address), text, sizeof text);
  return text;
}

void add_name(const GENERAL_NAME* name, PeerNames& names) {
  if (name->type == GEN_DNS) {
    if (auto host = printable(name->d.dNSName)) names.hosts.push_back(*std::move(host));
  } else if (name->type == GEN_IPADD) {
    if (auto ip = address_text(name->d.iPAddress); !ip.empty()) names.addresses.push_back(std::move(ip));
  } else if (name->type == GEN_URI) {
    const auto uri = printable(name->d.uniformResourceIdentifier);
    if (uri && uri->starts_with(node_uri_prefix))
      names.node_ids.push_back(uri->substr(node_uri_prefix.size()));
  }
}

}  // namespace

Result<CertificatePackage> read_package(const CertificateSource& source, const std::string& password,
                                        int purpose) {
  MUSTER_TRY(const openssl::Package package, parse_package(source));
  MUSTER_TRY_VOID(check_password(source, package.get(), password));
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  STACK_OF(X509)* chain = nullptr;
  const int parsed = PKCS12_parse(package.get(), password.c_str(), &key, &certificate, &chain);
  CertificatePackage read{openssl::Certificate(certificate), openssl::Key(key),
                          openssl::CertificateStack(chain)};
  if (parsed != 1)
    return fail(Code::corrupt, fmt::format("{} cannot be opened: {}", source.name(), openssl::take_reason()));
  if (!read.key) return fail(Code::corrupt, fmt::format("{} holds no private key", source.name()));
  if (!read.certificate)  // the parser gives the certificate that belongs to the key
    return fail(Code::corrupt, fmt::format("{} holds no certificate of its private key", source.name()));
  if (X509_check_private_key(read.certificate.get(), read.key.get()) != 1) {
    ERR_clear_error();
    return fail(Code::corrupt,
                fmt::format("{}: the private key is not that of the certificate", source.name()));
  }
  MUSTER_TRY_VOID(check_dates(source, read.certificate.get()));
  if (X509_check_purpose(read.certificate.get(), purpose, 0) != 1)
    return fail(Code::refused, fmt::format("{}: the certificate ({}) may not be used to {} (extended key "
                                           "usage)",
                                           source.name(), subject_of(read.certificate.get()),
                                           purpose == X509_PURPOSE_SSL_SERVER ? "listen" : "connect"));
  return read;
}

Result<std::vector<openssl::Certificate>> read_authorities(const CertificateSource& source) {
  return read_all<openssl::Certificate>(
      source, "certificate", [](BIO* bio) { return PEM_read_bio_X509(bio, nullptr, nullptr, nullptr); });
}

Result<std::vector<openssl::Crl>> read_crls(const CertificateSource& source) {
  return read_all<openssl::Crl>(source, "revocation list", [](BIO* bio) {
    return PEM_read_bio_X509_CRL(bio, nullptr, nullptr, nullptr);
  });
}

std::string name_text(const X509_NAME* name) {
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB & ~XN_FLAG_SPC_EQ);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  constexpr long shown_max = 200;
  return size <= 0 ? "without a name"
                   : std::string(data, static_cast<std::size_t>(std::min(size, shown_max)));
}

std::string subject_of(const X509* certificate) { return name_text(X509_get_subject_name(certificate)); }

PeerNames names_of(const X509* certificate) {
  PeerNames names{.subject = subject_of(certificate)};
  auto* all =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < std::min(sk_GENERAL_NAME_num(all), names_max); ++i)
    add_name(sk_GENERAL_NAME_value(all, i), names);
  GENERAL_NAMES_free(all);
  return names;
}

int days_left(const ASN1_TIME* end) {
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, end) != 1) return 0;
  return days == 0 && seconds < 0 ? -1 : days;
}

std::string time_text(const ASN1_TIME* time) {
  tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "a time that cannot be read";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min);
}

}  // namespace muster::net
