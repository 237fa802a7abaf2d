// One attention call: four keys that score the same, so that the result is the mean of their values.
use sluice::hip::Hip;
use sluice::{Attention, Call, Context, Dtype, Keys, Kv, KvFormat, Launch, Layout, Result, F16};

const KEYS: usize = 4;
const HEAD_SIZE: usize = 128;

fn main() -> Result<()> {
    // The emulator runs the machine code that a GPU would; "gpu" asks for device 0 of the HIP runtime instead.
    let gpu = std::env::args().nth(1).map_or(false, |argument| argument == "gpu");
    let context = if gpu { Context::hip(0) } else { Context::emulated() }.build()?;

    // A plan: what all calls have in common. It chooses the kernel and loads it.
    let format = KvFormat::new(Dtype::F16, 1, HEAD_SIZE);
    let plan = context.plan(&Attention::new(Dtype::F16, 1, format))?;

    // Device memory, through the HIP runtime that the context is bound to. Row j of V holds the number j.
    let hip = Hip::new(&context)?;
    let values: Vec<F16> = (0..KEYS * HEAD_SIZE).map(|i| F16::from_f32((i / HEAD_SIZE) as f32)).collect();
    let q = hip.zeroed::<F16>(HEAD_SIZE)?;
    let k = hip.zeroed::<F16>(KEYS * HEAD_SIZE)?;
    let v = hip.buffer(&values)?;
    let mut o = hip.zeroed::<F16>(HEAD_SIZE)?;

    // A call: views of memory as [batch, token, head, dim], and numbers of rows. It is enqueued on a stream.
    let row = Layout::contiguous([1, 1, 1, HEAD_SIZE]);
    let rows = Layout::contiguous([1, KEYS, 1, HEAD_SIZE]);
    let kv = Kv::new(format, k.tensor(rows)?, Some(v.tensor(rows)?));
    let call = Call::new(1, q.tensor(row)?, 1, Keys::new(kv, KEYS), o.tensor_mut(row)?);
    // SAFETY: all memory stays until the device has been waited for, and no other code uses it.
    unsafe { plan.run(&call, &Launch::default()) }?;
    hip.synchronize()?;

    let mut result = vec![F16::default(); HEAD_SIZE];
    o.download(&mut result)?;
    println!("the mean of 0, 1, 2, 3 is 0x{:04x} in binary16", result[0].0);
    Ok(())
}
