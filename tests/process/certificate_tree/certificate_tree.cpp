// Makes a folder of certificates, good ones and every kind of bad one, for the tests of who is let in. Of
// each: <name>.p12 with the password in `password`, and <name>.pem with the certificate, its chain and the
// key for peers that are no Muster.
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <filesystem>

#include "muster/net/net.h"

namespace {

using namespace muster;
using namespace muster::net;

constexpr const char* password = "open sesame, says Ali Baba";
constexpr std::int64_t day_s = 24 * 3600;

class Tree {
 public:
  explicit Tree(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
    write("password", fmt::format("{}\n", password));
  }

  Credential authority(const std::string& name, const Credential* above = nullptr) const {
    const CertificateSpec spec{
        .common_name = name, .is_authority = true, .begin_s = at(-10), .end_s = at(1000)};
    return make_certificate(spec, above).value();
  }

  // Good unless `change` makes it bad; `chain` is shown with it.
  Credential leaf(
      const std::string& name, const Credential* issuer, const std::string& chain = "",
      void (*change)(CertificateSpec&) = [](CertificateSpec&) {}) const {
    CertificateSpec spec{.common_name = name,
                         .alternative_names = {"DNS:localhost", "IP:127.0.0.1", "IP:::1"},
                         .for_servers = true,
                         .for_clients = true,
                         .begin_s = at(-5),
                         .end_s = at(500)};
    change(spec);
    const Credential made = make_certificate(spec, issuer).value();
    write(name + ".p12", make_pkcs12({.credential = made, .chain_pem = chain}, password).value());
    write(name + ".pem", made.certificate_pem + chain + made.key_pem);
    return made;
  }

  std::string crl(const Credential& issuer, const std::vector<Credential>& revoked,
                  std::int64_t begin_day = -5, std::int64_t end_day = 30) const {
    RevocationList list{.begin_s = at(begin_day), .end_s = at(end_day)};
    for (const Credential& one : revoked)
      list.revoked.push_back(
          {.serial = read_certificates(one.certificate_pem).value().front().serial, .time_s = at(-1)});
    return make_crl(list, issuer).value();
  }

  void write(const std::string& name, const std::string& text) const {
    const auto written = real_files().write((folder_ / name).string(), std::as_bytes(std::span(text)));
    MUSTER_CHECK(written, "cannot write the tree of certificates");
  }

  static std::int64_t at(std::int64_t day) { return std::time(nullptr) + day * day_s; }

 private:
  const std::filesystem::path folder_;
};

void make_leaves(const Tree& tree, const Credential& ca) {
  tree.leaf("good", &ca);
  tree.leaf("renewed", &ca);
  tree.leaf("server-only", &ca, "", [](CertificateSpec& spec) { spec.for_clients = false; });
  tree.leaf("client-only", &ca, "", [](CertificateSpec& spec) { spec.for_servers = false; });
  tree.leaf("expired", &ca, "", [](CertificateSpec& spec) { spec.end_s = Tree::at(-1); });
  tree.leaf("not-yet-valid", &ca, "", [](CertificateSpec& spec) { spec.begin_s = Tree::at(1); });
  tree.leaf("ends-soon", &ca, "", [](CertificateSpec& spec) { spec.end_s = Tree::at(20) + day_s / 2; });
  tree.leaf("wrong-name", &ca, "",
            [](CertificateSpec& spec) { spec.alternative_names = {"DNS:elsewhere.invalid"}; });
  tree.leaf("127.0.0.1", &ca, "",
            [](CertificateSpec& spec) { spec.alternative_names.clear(); });  // in its CN only
  tree.leaf("node-0", &ca, "", [](CertificateSpec& spec) { spec.alternative_names = {"URI:muster:node:0"}; });
  tree.leaf("node-1", &ca, "",
            [](CertificateSpec& spec) { spec.alternative_names.push_back("URI:muster:node:1"); });
  tree.leaf("scheduler", &ca, "",
            [](CertificateSpec& spec) { spec.alternative_names = {"URI:muster:node:scheduler"}; });
  tree.leaf("rsa-2048", &ca, "", [](CertificateSpec& spec) { spec.key_kind = KeyKind::rsa_2048; });
  tree.leaf("rsa-1024", &ca, "", [](CertificateSpec& spec) { spec.key_kind = KeyKind::rsa_1024; });
  tree.leaf("sha-1", &ca, "", [](CertificateSpec& spec) { spec.digest = "SHA1"; });
  tree.leaf("self-signed", nullptr);
}

void make_strange_packages(const Tree& tree, const Credential& ca) {
  const Credential one = tree.leaf("one", &ca);
  const Credential two = tree.leaf("two", &ca);
  tree.write("without-key.p12", make_pkcs12({.credential = {one.certificate_pem, ""}}, password).value());
  tree.write("foreign-key.p12",
             make_pkcs12({.credential = {one.certificate_pem, two.key_pem}}, password).value());
  tree.write("empty-password.p12", make_pkcs12({.credential = one}, "").value());
  const std::string whole = make_pkcs12({.credential = one}, password).value();
  tree.write("truncated.p12", whole.substr(0, whole.size() / 2));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const Tree tree(argv[1]);
  const Credential ca = tree.authority("Test authority");
  const Credential other = tree.authority("Another authority");
  const Credential namesake = tree.authority("Test authority");
  const Credential middle = tree.authority("Test intermediate", &ca);
  const Credential bad_middle = tree.authority("Revoked intermediate", &ca);
  const Credential silent_middle = tree.authority("Intermediate without a list", &ca);
  make_leaves(tree, ca);
  make_strange_packages(tree, ca);
  tree.leaf("other-authority", &other);
  tree.leaf("same-name-other-authority", &namesake);
  tree.leaf("under-intermediate", &middle, middle.certificate_pem);
  tree.leaf("under-revoked-intermediate", &bad_middle, bad_middle.certificate_pem);
  tree.leaf("under-intermediate-without-list", &silent_middle, silent_middle.certificate_pem);
  const Credential revoked = tree.leaf("revoked", &ca);
  const Credential later = tree.leaf("revoked-later", &ca);

  tree.write("ca.crt", ca.certificate_pem);
  const std::string below = tree.crl(middle, {}) + tree.crl(bad_middle, {});
  tree.write("crl.pem", tree.crl(ca, {revoked, bad_middle}) + below);
  tree.write("crl-later.pem", tree.crl(ca, {revoked, bad_middle, later}) + below);
  tree.write("crl-expired.pem", tree.crl(ca, {}, -20, -10) + below);
  tree.write("crl-not-yet-valid.pem", tree.crl(ca, {}, 10, 20) + below);
  tree.write("crl-of-another.pem", tree.crl(other, {}) + below);
  tree.write("crl-of-the-same-name.pem", tree.crl(namesake, {}) + below);
  const std::string whole = tree.crl(ca, {revoked});
  tree.write("crl-corrupt.pem", whole.substr(0, whole.size() / 2));
  return 0;
}
