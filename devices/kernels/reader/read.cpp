// Readers: creation, reading, state. The ops of both versions have the same
// kernels: a reference to a reader is its handle.
#include "devices/kernel_registry.h"
#include "devices/kernels/reader/reader.h"
#include "devices/kernels/variable/state_inputs.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class ReaderKernel final : public CheapKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    Result<ReaderSpec> spec = ReaderSpec::make(info);
    if (!spec.ok()) return spec.status();
    return std::unique_ptr<Kernel>(new ReaderKernel(info, *spec));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_RETURN_IF_ERROR(
        resource_.set_handle(context, [&]() -> Result<Ref<StateObject>> {
          return Ref<StateObject>(make_ref_counted<Reader>(
              resource_.is_anonymous() ? "" : resource_.key().name, spec_));
        }));
    // Another node may have made it.
    const auto* reader =
        state_object<Reader>(*context.output(0).data<ResourceHandle>());
    if (reader->spec() == spec_) return {};
    return context.fail("{} exists as a {} with other attributes",
                        reader->describe(), reader->spec().name());
  }
  bool is_bookkeeping() const override { return true; }

 private:
  ReaderKernel(const KernelInfo& info, const ReaderSpec& spec)
      : resource_(info), spec_(spec) {}

  const ResourceOp resource_;
  const ReaderSpec spec_;
};

Reader& reader_of(StateActor& actor) { return static_cast<Reader&>(actor); }
const Reader& reader_of(const StateActor& actor) {
  return static_cast<const Reader&>(actor);
}

// ReaderRead and ReaderReadUpTo: Note [Reading ahead].
template <bool kIsMany>
class ReadKernel final : public HandleKernel<Reader> {
 public:
  explicit ReadKernel(const KernelInfo&) {}

  // A file may be read meanwhile.
  WaitsFor waits_for() const override { return WaitsFor::kOutside; }
  std::optional<Line> line() const override { return Line::kOut; }
  Status check(const KernelContext& context, const StateActor&,
               Errand& errand) const override {
    TAGFLOW_RETURN_IF_ERROR(handle_input<Queue>(context, 1).status());
    if constexpr (!kIsMany) return {};
    const Tensor& count = context.input(2);
    if (!count.is_scalar())
      return context.fail("num_records must be a scalar, not {}",
                          count.describe());
    errand.amount = count.scalar_value<int64_t>();
    if (errand.amount < 0)
      return context.fail("num_records must not be negative, but is {}",
                          errand.amount);
    return {};
  }
  Readiness readiness(const KernelContext&, const StateActor& actor,
                      const Errand& errand) const override {
    const Reader& reader = reader_of(actor);
    if (errand.amount == 0 || reader.can_give(errand.amount))
      return Readiness::kWhole;
    return reader.is_busy() ? Readiness::kNotYet : Readiness::kPart;
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand& errand) const override {
    Reader& reader = reader_of(actor);
    if (errand.amount > 0 && !reader.can_give(errand.amount))
      return reader.advance(context, errand.amount, context.input(1));
    return kIsMany ? reader.give(context, errand.amount)
                   : reader.give_one(context);
  }
};

class RecordsProducedKernel final : public HandleKernel<Reader> {
 public:
  explicit RecordsProducedKernel(const KernelInfo&) {}
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    context.set_output(0, Tensor::scalar(reader_of(actor).records_produced()));
    return {};
  }
};

class UnitsCompletedKernel final : public HandleKernel<Reader> {
 public:
  explicit UnitsCompletedKernel(const KernelInfo&) {}
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    context.set_output(0, Tensor::scalar(reader_of(actor).units_completed()));
    return {};
  }
};

class SerializeReaderKernel final : public HandleKernel<Reader> {
 public:
  explicit SerializeReaderKernel(const KernelInfo&) {}
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, Shape{}));
    StringWriter(*output).take(*output->mutable_data<std::string>(),
                               reader_of(actor).state());
    return {};
  }
};

class RestoreReaderKernel final : public HandleKernel<Reader> {
 public:
  explicit RestoreReaderKernel(const KernelInfo&) {}
  Status check(const KernelContext& context, const StateActor&,
               Errand&) const override {
    if (context.input(1).is_scalar()) return {};
    return context.fail("state must be a scalar, not {}",
                        context.input(1).describe());
  }
  Status perform(KernelContext& context, StateActor& actor,
                 Errand&) const override {
    return reader_of(actor).restore_state(
        context, context.input(1).scalar_value<std::string>());
  }
};

class ResetReaderKernel final : public HandleKernel<Reader> {
 public:
  explicit ResetReaderKernel(const KernelInfo&) {}
  Status perform(KernelContext&, StateActor& actor, Errand&) const override {
    reader_of(actor).reset();
    return {};
  }
};

}  // namespace

void register_reader_op_kernels(KernelRegistry& registry) {
  for (const char* op :
       {"WholeFileReader", "TextLineReader", "FixedLengthRecordReader",
        "TFRecordReader", "IdentityReader"})
    add_both<ReaderKernel>(registry, op);
  registry.add<ReaderKernel>("LMDBReader");
  add_both<ReadKernel<false>>(registry, "ReaderRead");
  add_both<ReadKernel<true>>(registry, "ReaderReadUpTo");
  add_both<RecordsProducedKernel>(registry, "ReaderNumRecordsProduced");
  add_both<UnitsCompletedKernel>(registry, "ReaderNumWorkUnitsCompleted");
  add_both<SerializeReaderKernel>(registry, "ReaderSerializeState");
  add_both<RestoreReaderKernel>(registry, "ReaderRestoreState");
  add_both<ResetReaderKernel>(registry, "ReaderReset");
}

}  // namespace tagflow::devices
