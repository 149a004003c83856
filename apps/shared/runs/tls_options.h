// The switches that name the certificates of a process.
#pragma once

#include <memory>
#include <string>

#include "apps/shared/program/exit_code.h"
#include "apps/shared/runs/engine_options.h"
#include "net/config/tls_files.h"

namespace tagflow::apps {

// Declares --tls-ca, --tls-cert and --tls-key, which belong together, and to
// the option `cluster`, if there is one. `switches` must outlive the parsing.
void add_tls_options(CLI::App& app, TlsSwitches& switches,
                     CLI::Option* cluster = nullptr,
                     const std::string& group = "");

// What the switches name, or else the cluster file, is read; null if neither
// names any. `process` is the process_name() of this one. A usage error for
// files that do not go together, and errors of the files.
Failure read_tls(const TlsSwitches& switches, const net::TlsFiles& of_cluster,
                 const std::string& process, std::shared_ptr<net::Tls>& tls);

}  // namespace tagflow::apps
