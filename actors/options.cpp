#include "actors/options.h"

#include "devices/cancellation.h"

namespace tagflow::actors {

CancelToken::CancelToken() : hooks_(std::make_shared<devices::CancelList>()) {}
void CancelToken::cancel() { hooks_->cancel(); }
bool CancelToken::cancelled() const { return hooks_->cancelled(); }

}  // namespace tagflow::actors
