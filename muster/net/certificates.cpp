#include "muster/net/credentials.h"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <ctime>

#include "muster/net/address.h"
#include "muster/net/openssl_objects.h"

namespace muster::net {
namespace {

using namespace openssl;

using BigNumber = std::unique_ptr<BIGNUM, Release<BN_free>>;
using Integer = std::unique_ptr<ASN1_INTEGER, Release<ASN1_INTEGER_free>>;
using Time = std::unique_ptr<ASN1_TIME, Release<ASN1_TIME_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Release<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Release<GENERAL_NAMES_free>>;
using Revoked = std::unique_ptr<X509_REVOKED, Release<X509_REVOKED_free>>;

constexpr std::size_t pem_certificates_max = 256;

tl::unexpected<Error> fail_openssl(Code code, std::string_view what) {
  return fail(code, fmt::format("{}: {}", what, take_reason()));
}

void free_bags(STACK_OF(PKCS12_SAFEBAG) * bags) { sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free); }
void free_safes(STACK_OF(PKCS7) * safes) { sk_PKCS7_pop_free(safes, PKCS7_free); }
void free_text(char* text) { OPENSSL_free(text); }

// What `write` leaves in a memory BIO.
template <class Write>
Result<std::string> written(std::string_view what, Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1)
    return fail_openssl(Code::internal, fmt::format("cannot write {}", what));
  char* data = nullptr;
  const long size_bytes = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size_bytes));
}

Result<std::string> certificate_pem(X509* certificate) {
  return written("a certificate", [&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

Result<std::string> key_pem(EVP_PKEY* key) {
  return written("a key", [&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Result<Certificate> parse_certificate(std::string_view pem) {
  Certificate certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
  if (!certificate) return fail_openssl(Code::corrupt, "cannot read a certificate");
  return certificate;
}

// Never asks at the terminal for a password.
int no_password(char*, int, int, void*) { return -1; }

Result<Key> parse_key(std::string_view pem) {
  Key key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, &no_password, nullptr));
  if (!key) return fail_openssl(Code::corrupt, "cannot read a private key");
  return key;
}

Result<Key> make_key(KeyKind kind) {
  Key key(kind == KeyKind::p256 ? EVP_EC_gen("P-256")
                                : EVP_RSA_gen(kind == KeyKind::rsa_2048 ? 2048U : 1024U));
  if (!key) return fail_openssl(Code::internal, "cannot make a key");
  return key;
}

std::int64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return static_cast<std::int64_t>(::timegm(&parts));
}

std::string text_of(const X509_NAME* name) {
  const auto text = written("a name", [&](BIO* bio) {
    return X509_NAME_print_ex(bio, name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB) >= 0 ? 1 : 0;
  });
  return text.value_or("?");
}

std::string hex_of(const ASN1_INTEGER* number) {
  const BigNumber value(ASN1_INTEGER_to_BN(number, nullptr));
  const std::unique_ptr<char, Release<free_text>> digits(value ? BN_bn2hex(value.get()) : nullptr);
  return digits ? digits.get() : "?";
}

Result<Integer> integer_from_hex(const std::string& digits) {
  BIGNUM* parsed = nullptr;
  const int read = BN_hex2bn(&parsed, digits.c_str());
  const BigNumber value(parsed);
  Integer number(value && read == static_cast<int>(digits.size()) ? BN_to_ASN1_INTEGER(value.get(), nullptr)
                                                                  : nullptr);
  if (!number) return fail(Code::invalid_argument, fmt::format("'{}' is no serial number", digits));
  return number;
}

bool add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_nconf_nid(nullptr, &context, kind, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Result<> add_alternative_names(X509* certificate, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  const Names list(GENERAL_NAMES_new());
  for (const std::string& name : names) {
    const auto colon = name.find(':');
    const std::string kind = name.substr(0, colon);
    const int type = kind == "DNS" ? GEN_DNS : kind == "IP" ? GEN_IPADD : GEN_URI;
    std::string value = colon == std::string::npos ? "" : name.substr(colon + 1);
    GENERAL_NAME* made = a2i_GENERAL_NAME(nullptr, nullptr, nullptr, type, value.data(), 0);
    if (value.empty() || made == nullptr || (type == GEN_URI && kind != "URI")) {
      GENERAL_NAME_free(made);
      ERR_clear_error();
      return fail(
          Code::invalid_argument,
          fmt::format("'{}' is no name for a certificate: write DNS:host, IP:address or URI:text", name));
    }
    sk_GENERAL_NAME_push(list.get(), made);
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, list.get(), 0, X509V3_ADD_DEFAULT) != 1)
    return fail_openssl(Code::internal, "cannot add names to a certificate");
  return {};
}

std::string purposes(const CertificateSpec& spec) {
  std::string text;
  if (spec.for_servers) text = "serverAuth";
  if (spec.for_clients) text += text.empty() ? "clientAuth" : ",clientAuth";
  return text;
}

bool add_extensions(X509* certificate, X509* issuer, const CertificateSpec& spec) {
  const auto add = [&](int kind, const char* value) {
    return add_extension(certificate, issuer, kind, value);
  };
  const char* usage = spec.is_authority                ? "critical,keyCertSign,cRLSign"
                      : spec.key_kind == KeyKind::p256 ? "critical,digitalSignature"
                                                       : "critical,digitalSignature,keyEncipherment";
  const std::string purpose = purposes(spec);
  return add(NID_basic_constraints, spec.is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
         add(NID_key_usage, usage) && add(NID_subject_key_identifier, "hash") &&
         add(NID_authority_key_identifier, "keyid") &&
         (purpose.empty() || add(NID_ext_key_usage, purpose.c_str()));
}

bool set_serial(X509* certificate) {
  const BigNumber value(BN_new());
  return BN_rand(value.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(value.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// All but the names and the extensions.
bool fill(X509* certificate, const CertificateSpec& spec, EVP_PKEY* key) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const auto* name = reinterpret_cast<const unsigned char*>(spec.common_name.data());
  return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
         ASN1_TIME_set(X509_getm_notBefore(certificate), spec.begin_s) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), spec.end_s) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, name,
                                    static_cast<int>(spec.common_name.size()), -1, 0) == 1;
}

std::vector<std::string> alternative_names(X509* certificate) {
  const Names list(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> names;
  for (int i = 0; i < sk_GENERAL_NAME_num(list.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list.get(), i);
    auto text =
        written("a name", [&](BIO* bio) { return GENERAL_NAME_print(bio, const_cast<GENERAL_NAME*>(name)); });
    if (!text) continue;
    constexpr std::string_view address = "IP Address:";
    if (text->starts_with(address)) {
      const std::string ip = text->substr(address.size());
      text = "IP:" + parse_ip(ip).value_or(ip);
    }
    names.push_back(*std::move(text));
  }
  return names;
}

CertificateFacts facts_of(X509* certificate) {
  return {.subject = text_of(X509_get_subject_name(certificate)),
          .issuer = text_of(X509_get_issuer_name(certificate)),
          .serial = hex_of(X509_get0_serialNumber(certificate)),
          .alternative_names = alternative_names(certificate),
          .is_authority = X509_check_ca(certificate) != 0,
          .begin_s = seconds_of(X509_get0_notBefore(certificate)),
          .end_s = seconds_of(X509_get0_notAfter(certificate))};
}

// Every certificate of a PEM text.
Result<std::vector<Certificate>> parse_certificates(std::string_view pem) {
  const Bio bio = reader(pem);
  std::vector<Certificate> certificates;
  while (certificates.size() < pem_certificates_max) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (!next) break;
    certificates.push_back(std::move(next));
  }
  if (certificates.empty()) return fail_openssl(Code::corrupt, "there is no certificate in it");
  ERR_clear_error();  // the end of the text
  return certificates;
}

bool add_revoked(X509_CRL* crl, const RevokedCertificate& entry, ASN1_INTEGER* serial) {
  Revoked revoked(X509_REVOKED_new());
  const Time time(ASN1_TIME_set(nullptr, entry.time_s));
  if (!revoked || !time || X509_REVOKED_set_serialNumber(revoked.get(), serial) != 1 ||
      X509_REVOKED_set_revocationDate(revoked.get(), time.get()) != 1 ||
      X509_CRL_add0_revoked(crl, revoked.get()) != 1)
    return false;
  static_cast<void>(revoked.release());  // the list's now
  return true;
}

bool fill(X509_CRL* crl, const RevocationList& list, X509* issuer) {
  const Time begin(ASN1_TIME_set(nullptr, list.begin_s));
  const Time end(ASN1_TIME_set(nullptr, list.end_s));
  return begin && end && X509_CRL_set_version(crl, X509_CRL_VERSION_2) == 1 &&
         X509_CRL_set_issuer_name(crl, X509_get_subject_name(issuer)) == 1 &&
         X509_CRL_set1_lastUpdate(crl, begin.get()) == 1 && X509_CRL_set1_nextUpdate(crl, end.get()) == 1;
}

// As PKCS12_create does, which refuses a key that is not the certificate's.
Result<Package> assemble(X509* certificate, EVP_PKEY* key, const std::vector<Certificate>& chain,
                         const std::string& password) {
  STACK_OF(PKCS12_SAFEBAG)* bags = nullptr;
  STACK_OF(PKCS7)* safes = nullptr;
  bool is_well = PKCS12_add_cert(&bags, certificate) != nullptr;
  for (const Certificate& above : chain) is_well = is_well && PKCS12_add_cert(&bags, above.get()) != nullptr;
  const std::unique_ptr<STACK_OF(PKCS12_SAFEBAG), Release<free_bags>> certificate_bags(bags);
  const int cipher = NID_aes_256_cbc;
  is_well = is_well && PKCS12_add_safe(&safes, bags, cipher, PKCS12_DEFAULT_ITER, password.c_str()) == 1;
  STACK_OF(PKCS12_SAFEBAG)* key_bag = nullptr;
  if (key != nullptr)
    is_well = is_well &&
              PKCS12_add_key(&key_bag, key, 0, PKCS12_DEFAULT_ITER, cipher, password.c_str()) != nullptr &&
              PKCS12_add_safe(&safes, key_bag, -1, 0, nullptr) == 1;
  const std::unique_ptr<STACK_OF(PKCS12_SAFEBAG), Release<free_bags>> key_bags(key_bag);
  const std::unique_ptr<STACK_OF(PKCS7), Release<free_safes>> all(safes);
  Package file(is_well ? PKCS12_add_safes(safes, 0) : nullptr);
  if (!file ||
      PKCS12_set_mac(file.get(), password.c_str(), -1, nullptr, 0, PKCS12_DEFAULT_ITER, EVP_sha256()) != 1)
    return fail_openssl(Code::internal, "cannot make a PKCS#12 file");
  return file;
}

}  // namespace

Result<Credential> make_certificate(const CertificateSpec& spec, const Credential* issuer) {
  MUSTER_TRY(const Key key, make_key(spec.key_kind));
  const Certificate certificate(X509_new());
  Certificate above;
  Key signing_key;
  if (issuer != nullptr) {
    MUSTER_TRY(above, parse_certificate(issuer->certificate_pem));
    MUSTER_TRY(signing_key, parse_key(issuer->key_pem));
  }
  X509* const issued_by = above ? above.get() : certificate.get();
  const EVP_MD* digest = EVP_get_digestbyname(spec.digest.c_str());
  if (!fill(certificate.get(), spec, key.get()) ||
      X509_set_issuer_name(certificate.get(), X509_get_subject_name(issued_by)) != 1 ||
      !add_extensions(certificate.get(), issued_by, spec))
    return fail_openssl(Code::internal, fmt::format("cannot make a certificate for '{}'", spec.common_name));
  MUSTER_TRY_VOID(add_alternative_names(certificate.get(), spec.alternative_names));
  if (digest == nullptr ||
      X509_sign(certificate.get(), signing_key ? signing_key.get() : key.get(), digest) == 0)
    return fail_openssl(Code::internal, fmt::format("cannot sign a certificate with {}", spec.digest));
  Credential made;
  MUSTER_TRY(made.certificate_pem, certificate_pem(certificate.get()));
  MUSTER_TRY(made.key_pem, key_pem(key.get()));
  return made;
}

Result<std::string> make_crl(const RevocationList& list, const Credential& issuer) {
  MUSTER_TRY(const Certificate issued_by, parse_certificate(issuer.certificate_pem));
  MUSTER_TRY(const Key key, parse_key(issuer.key_pem));
  const Crl crl(X509_CRL_new());
  bool is_well = fill(crl.get(), list, issued_by.get());
  for (const RevokedCertificate& entry : list.revoked) {
    MUSTER_TRY(const Integer serial, integer_from_hex(entry.serial));
    is_well = is_well && add_revoked(crl.get(), entry, serial.get());
  }
  X509_CRL_sort(crl.get());
  X509V3_CTX context;
  X509V3_set_ctx(&context, issued_by.get(), nullptr, nullptr, crl.get(), 0);
  const Extension authority(
      X509V3_EXT_nconf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always"));
  if (!is_well || !authority || X509_CRL_add_ext(crl.get(), authority.get(), -1) != 1 ||
      X509_CRL_sign(crl.get(), key.get(), EVP_sha256()) == 0)
    return fail_openssl(Code::internal, "cannot make a revocation list");
  return written("a revocation list", [&](BIO* bio) { return PEM_write_bio_X509_CRL(bio, crl.get()); });
}

Result<RevocationList> read_crl(std::string_view pem) {
  const Crl crl(PEM_read_bio_X509_CRL(reader(pem).get(), nullptr, nullptr, nullptr));
  if (!crl) return fail_openssl(Code::corrupt, "there is no revocation list in it");
  RevocationList list{.issuer = text_of(X509_CRL_get_issuer(crl.get())),
                      .begin_s = seconds_of(X509_CRL_get0_lastUpdate(crl.get())),
                      .end_s = seconds_of(X509_CRL_get0_nextUpdate(crl.get()))};
  STACK_OF(X509_REVOKED)* entries = X509_CRL_get_REVOKED(crl.get());
  for (int i = 0; i < sk_X509_REVOKED_num(entries); ++i) {
    const X509_REVOKED* entry = sk_X509_REVOKED_value(entries, i);
    list.revoked.push_back({.serial = hex_of(X509_REVOKED_get0_serialNumber(entry)),
                            .time_s = seconds_of(X509_REVOKED_get0_revocationDate(entry))});
  }
  return list;
}

Result<std::string> make_pkcs12(const Pkcs12Content& content, const std::string& password) {
  MUSTER_TRY(const Certificate certificate, parse_certificate(content.credential.certificate_pem));
  Key key;
  if (!content.credential.key_pem.empty()) {
    MUSTER_TRY(key, parse_key(content.credential.key_pem));
  }
  std::vector<Certificate> chain;
  if (!content.chain_pem.empty()) {
    MUSTER_TRY(chain, parse_certificates(content.chain_pem));
  }
  MUSTER_TRY(const Package file, assemble(certificate.get(), key.get(), chain, password));
  return written("a PKCS#12 file", [&](BIO* bio) { return i2d_PKCS12_bio(bio, file.get()); });
}

Result<Pkcs12Content> read_pkcs12(std::string_view bytes, const std::string& password) {
  const Package file(d2i_PKCS12_bio(reader(bytes).get(), nullptr));
  if (!file) return fail_openssl(Code::corrupt, "it is no PKCS#12 file");
  EVP_PKEY* raw_key = nullptr;
  X509* raw_certificate = nullptr;
  STACK_OF(X509)* raw_chain = nullptr;
  const bool is_read =
      PKCS12_parse(file.get(), password.c_str(), &raw_key, &raw_certificate, &raw_chain) == 1;
  const Key key(raw_key);
  const Certificate certificate(raw_certificate);
  const CertificateStack chain(raw_chain);
  if (!is_read) {
    const std::string why = take_reason();
    return fail(Code::invalid_argument, why == "mac verify failure" ? "the password is wrong" : why);
  }
  if (!certificate || !key)
    return fail(Code::invalid_argument, !key ? "there is no private key in it"
                                             : "there is no certificate in it that belongs to its key");
  Pkcs12Content content;
  MUSTER_TRY(content.credential.certificate_pem, certificate_pem(certificate.get()));
  MUSTER_TRY(content.credential.key_pem, key_pem(key.get()));
  for (int i = 0; i < sk_X509_num(chain.get()); ++i) {
    MUSTER_TRY(const std::string above, certificate_pem(sk_X509_value(chain.get(), i)));
    content.chain_pem += above;
  }
  return content;
}

Result<std::vector<CertificateFacts>> read_certificates(std::string_view pem) {
  MUSTER_TRY(const auto certificates, parse_certificates(pem));
  std::vector<CertificateFacts> facts;
  for (const Certificate& certificate : certificates) facts.push_back(facts_of(certificate.get()));
  return facts;
}

std::string random_hex(std::size_t digit_count) {
  std::string digits;
  while (digits.size() < digit_count) digits += fmt::format("{:016x}", entropy());
  digits.resize(digit_count);
  return digits;
}

}  // namespace muster::net
