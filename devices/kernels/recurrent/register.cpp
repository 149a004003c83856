// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_recurrent_lstm_kernels(KernelRegistry& registry);  // lstm.cpp
void register_recurrent_lstm_grad_kernels(KernelRegistry& registry);
void register_recurrent_gru_kernels(KernelRegistry& registry);  // gru.cpp
void register_recurrent_ctc_loss_kernels(KernelRegistry& registry);
void register_recurrent_ctc_decoder_kernels(KernelRegistry& registry);

void register_recurrent_kernels(KernelRegistry& registry) {
  register_recurrent_lstm_kernels(registry);
  register_recurrent_lstm_grad_kernels(registry);
  register_recurrent_gru_kernels(registry);
  register_recurrent_ctc_loss_kernels(registry);
  register_recurrent_ctc_decoder_kernels(registry);
}

}  // namespace tagflow::devices
