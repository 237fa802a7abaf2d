//! A device with the plans that were made for it, and one call there: copies in, the kernel, a copy out.

use crate::error::to_candle;
use crate::half_float::HalfFloat;
use crate::Options;
use sluice::hip::{Buffer, Hip};
use sluice::{
    Attention, Bounds, Call, Causal, Context, Dtype, Keys, Kv, KvFormat, Launch, Layout, Mask, Plan, Result,
    Scores,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A device of Sluice, to be made once and used by all layers and threads. A counted reference.
#[derive(Clone, Debug)]
pub struct Sluice {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    context: Context,
    hip: Hip,
    plans: Mutex<HashMap<PlanKey, Arc<Plan>>>,
}

/// Q, K or V: elements on the host, and where among them those of the tensor are.
pub(crate) struct Input<'a, T> {
    pub(crate) elements: &'a [T],
    pub(crate) layout: Layout,
}

/// All that a plan depends on, and nothing else: calls with equal keys share a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PlanKey {
    dtype: Dtype,
    q_heads: usize,
    kv_heads: usize,
    head_dim_qk: usize,
    head_dim_v: usize,
    causal: bool,
    window_left: Option<usize>,
    window_right: Option<usize>,
    soft_cap_bits: u32,
    max_batch: usize,
    max_q_len: usize,
    max_kv_len: usize,
}

impl PlanKey {
    /// Bounds let a plan choose its kernel and split long keys. They are powers of two, so that a text that grows by a
    /// token at a time needs a plan per doubling.
    fn new(dtype: Dtype, q: &Layout, k: &Layout, v: &Layout, options: &Options) -> PlanKey {
        let [batch, q_len, q_heads, head_dim_qk] = q.shape();
        let [_, kv_len, kv_heads, _] = k.shape();
        let [.., head_dim_v] = v.shape();
        PlanKey {
            dtype,
            q_heads,
            kv_heads,
            head_dim_qk,
            head_dim_v,
            causal: options.causal,
            window_left: options.window_left,
            window_right: options.window_right,
            soft_cap_bits: options.soft_cap.to_bits(),
            max_batch: batch.next_power_of_two(),
            max_q_len: q_len.next_power_of_two(),
            max_kv_len: kv_len.next_power_of_two(),
        }
    }

    fn attention(&self) -> Attention {
        let kv = KvFormat {
            head_dim_v: self.head_dim_v,
            ..KvFormat::new(self.dtype, self.kv_heads, self.head_dim_qk)
        };
        Attention {
            mask: Some(Mask {
                causal: if self.causal { Causal::Yes } else { Causal::No },
                window_left: self.window_left,
                window_right: self.window_right,
                ..Mask::default()
            }),
            scores: Some(Scores { soft_cap: f32::from_bits(self.soft_cap_bits), ..Scores::default() }),
            bounds: Bounds {
                batch: self.max_batch,
                q_len: self.max_q_len,
                kv_len: self.max_kv_len,
                ..Bounds::default()
            },
            ..Attention::new(self.dtype, self.q_heads, kv)
        }
    }
}

impl Sluice {
    /// The emulator, which runs the kernels' machine code without a GPU.
    pub fn emulated() -> candle_core::Result<Sluice> {
        Context::emulated().build().map_err(to_candle).and_then(Sluice::new)
    }

    /// A GPU, through the HIP runtime of the process.
    pub fn hip(ordinal: u16) -> candle_core::Result<Sluice> {
        Context::hip(ordinal).build().map_err(to_candle).and_then(Sluice::new)
    }

    /// A context with settings of one's own, such as a trace function.
    pub fn new(context: Context) -> candle_core::Result<Sluice> {
        let hip = Hip::new(&context).map_err(to_candle)?;
        Ok(Sluice { shared: Arc::new(Shared { context, hip, plans: Mutex::default() }) })
    }

    pub fn context(&self) -> &Context {
        &self.shared.context
    }

    fn plan(&self, key: PlanKey) -> Result<Arc<Plan>> {
        let mut plans = self.shared.plans.lock().expect("making a plan does not panic");
        if let Some(plan) = plans.get(&key) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(self.shared.context.plan(&key.attention())?);
        plans.insert(key, plan.clone());
        Ok(plan)
    }

    /// O, contiguous. The shapes fit together.
    pub(crate) fn attention<T: HalfFloat>(
        &self,
        q: Input<T>,
        k: Input<T>,
        v: Input<T>,
        options: &Options,
    ) -> Result<Vec<T>> {
        let plan = self.plan(PlanKey::new(T::SLUICE_DTYPE, &q.layout, &k.layout, &v.layout, options))?;
        let hip = &self.shared.hip;
        hip.bind_thread()?; // candle calls on any thread

        let ([batch, q_len, q_heads, _], [.., head_dim_v]) = (q.layout.shape(), v.layout.shape());
        let o_layout = Layout::contiguous([batch, q_len, q_heads, head_dim_v]);
        let mut result = vec![T::from_f64(0.0); o_layout.shape().iter().product()];
        let upload = |input: &Input<T>| hip.buffer(T::elements(input.elements));
        let (q_buffer, k_buffer, v_buffer) = (upload(&q)?, upload(&k)?, upload(&v)?);
        let mut o_buffer: Buffer<T::Element> = hip.zeroed(result.len())?;

        let (k_tensor, v_tensor) = (k_buffer.tensor(k.layout)?, v_buffer.tensor(v.layout)?);
        let kv = Kv::new(plan.attention().kv, k_tensor, Some(v_tensor));
        let keys = Keys::new(kv, k.layout.shape()[1]);
        let o = o_buffer.tensor_mut(o_layout)?;
        let mut args = Call::new(batch, q_buffer.tensor(q.layout)?, q_len, keys, o);
        args.scale = options.scale;
        let mut workspace_buffer: Buffer<u8> = hip.zeroed(plan.info().workspace_bytes as usize)?;
        let workspace = workspace_buffer.workspace();
        let launch = Launch { workspace: Some(&workspace), ..Launch::default() };
        // SAFETY: the buffers are this call's, and the download waits for the run.
        unsafe { plan.run(&args, &launch) }?;
        o_buffer.download(T::elements_mut(&mut result))?;
        Ok(result)
    }
}
