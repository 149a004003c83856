// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_recurrent_lstm_kernels(KernelRegistry& registry);  // lstm.cpp
void register_recurrent_lstm_grad_kernels(KernelRegistry& registry);
void register_recurrent_gru_kernels(KernelRegistry& registry);  // gru.cpp

void register_recurrent_kernels(KernelRegistry& registry) {
  register_recurrent_lstm_kernels(registry);
  register_recurrent_lstm_grad_kernels(registry);
  register_recurrent_gru_kernels(registry);
}

}  // namespace tagflow::devices
