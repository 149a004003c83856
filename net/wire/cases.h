// Cases: what std::visit() calls, as one lambda for each alternative.
#pragma once

namespace tagflow::net {

template <class... Fs>
struct Cases : Fs... {
  using Fs::operator()...;
};
// For clang 14, which deduces no arguments of aggregates.
template <class... Fs>
Cases(Fs...) -> Cases<Fs...>;

}  // namespace tagflow::net
