// OpenSSL's objects with owners. Private to net and to the tools that make certificates.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <string_view>

namespace muster::net::openssl {

template <auto release>
struct Release {
  template <class T>
  void operator()(T* object) const {
    release(object);
  }
};

inline void release_certificates(STACK_OF(X509) * stack) { sk_X509_pop_free(stack, X509_free); }

using Bio = std::unique_ptr<BIO, Release<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Release<X509_free>>;
using CertificateStack = std::unique_ptr<STACK_OF(X509), Release<release_certificates>>;
using Context = std::unique_ptr<SSL_CTX, Release<SSL_CTX_free>>;
using Crl = std::unique_ptr<X509_CRL, Release<X509_CRL_free>>;
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using Package = std::unique_ptr<PKCS12, Release<PKCS12_free>>;
using Session = std::unique_ptr<SSL_SESSION, Release<SSL_SESSION_free>>;
using Store = std::unique_ptr<X509_STORE, Release<X509_STORE_free>>;

// Reads `bytes`, which stay where they are until it is gone.
inline Bio reader(std::string_view bytes) {
  return Bio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

// Takes what went wrong on this thread, newest first: "mac verify failure".
inline std::string take_reason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = error == 0 ? nullptr : ERR_reason_error_string(error);
  return text == nullptr ? "no reason was given" : text;
}

}  // namespace muster::net::openssl
