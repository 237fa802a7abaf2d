//! The part of the engine that calls Sluice: a paged cache per layer. A step appends the new rows of K and V, and the
//! new queries then see everything up to themselves. One plan serves prompts, another single bytes.

use sluice::hip::{Buffer, Hip, Stream};
use sluice::{
    Append, Array, Attention as Problem, Bounds, Call, Context, Device, Dtype, Keys, Kv, KvFormat, Launch,
    Layout, Mask, PageTableKind, Pages, Place, Plan, Result, Rows, F16,
};

const PAGE_SIZE: usize = 16;

pub struct Shape {
    pub layers: usize,
    pub q_heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub max_positions: usize,
}

pub struct Attention {
    context: Context,
    stream: Stream,
    shape: Shape,
    prompt_plan: Plan,
    token_plan: Plan,
    workspace: Buffer<u8>,
    /// Per layer, \[page, PAGE_SIZE, kv_heads, head_dim\].
    k_pool: Vec<Buffer<F16>>,
    v_pool: Vec<Buffer<F16>>,
    q: Buffer<F16>,
    k: Buffer<F16>,
    v: Buffer<F16>,
    o: Buffer<F16>,
    /// Page numbers by position, starts (0 and the number of new rows), and the number of keys; the device reads them.
    table: Buffer<i32>,
    starts: Buffer<i32>,
    lengths: Buffer<i32>,
    positions: usize,
    rows: usize,
}

fn to_halves(values: &[f32]) -> Vec<F16> {
    values.iter().map(|value| F16::from_f32(*value)).collect()
}

impl Attention {
    pub fn new(context: &Context, shape: Shape) -> Result<Attention> {
        let hip = Hip::new(context)?;
        let pages = (shape.max_positions + PAGE_SIZE - 1) / PAGE_SIZE;
        let format = KvFormat::new(Dtype::F16, shape.kv_heads, shape.head_dim);
        let format = format.paged(PAGE_SIZE, PageTableKind::Block);
        let plan = |max_rows| {
            context.plan(&Problem {
                // The last new row sees the whole cache.
                mask: Some(Mask::causal()),
                bounds: Bounds {
                    batch: 1,
                    q_len: max_rows,
                    kv_len: shape.max_positions,
                    ..Bounds::default()
                },
                ..Problem::new(Dtype::F16, shape.q_heads, format)
            })
        };
        let (prompt_plan, token_plan) = (plan(shape.max_positions)?, plan(1)?);
        let workspace = prompt_plan.info().workspace_bytes.max(token_plan.info().workspace_bytes) as usize;
        let (q_row, kv_row) = (shape.q_heads * shape.head_dim, shape.kv_heads * shape.head_dim);
        let pool =
            || (0..shape.layers).map(|_| hip.zeroed(pages * PAGE_SIZE * kv_row)).collect::<Result<Vec<_>>>();
        // The pages of the text are out of order, as in a server after a while.
        let table: Vec<i32> = (0..pages as i32).rev().collect();
        Ok(Attention {
            context: context.clone(),
            stream: hip.stream()?,
            prompt_plan,
            token_plan,
            workspace: hip.zeroed(workspace.max(1))?,
            k_pool: pool()?,
            v_pool: pool()?,
            q: hip.zeroed(shape.max_positions * q_row)?,
            k: hip.zeroed(shape.max_positions * kv_row)?,
            v: hip.zeroed(shape.max_positions * kv_row)?,
            o: hip.zeroed(shape.max_positions * q_row)?,
            table: hip.buffer(&table)?,
            starts: hip.zeroed(2)?,
            lengths: hip.zeroed(1)?,
            shape,
            positions: 0,
            rows: 0,
        })
    }

    /// Number of positions in the cache, which is the next row's position.
    pub fn length(&self) -> usize {
        self.positions
    }

    /// Kernels of the plans for prompts and for bytes.
    pub fn kernels(&self) -> [String; 2] {
        [self.prompt_plan.info().kernel, self.token_plan.info().kernel]
    }

    /// Call this before the layers of a step; each layer has this many new rows.
    pub fn begin_step(&mut self, rows: usize) -> Result<()> {
        self.rows = rows;
        self.positions += rows;
        self.starts.upload(&[0, rows as i32])?;
        self.lengths.upload(&[self.positions as i32])
    }

    /// Appends the rows of K and V to the layer's cache and returns attention of the queries. All are
    /// \[rows, heads, head_dim\]; the device reads and writes them as 16-bit floats.
    pub fn run(&mut self, layer: usize, q: &[f32], k: &[f32], v: &[f32]) -> Result<Vec<f32>> {
        self.q.upload(&to_halves(q))?;
        self.k.upload(&to_halves(k))?;
        self.v.upload(&to_halves(v))?;
        let Shape { q_heads, kv_heads, head_dim, .. } = self.shape;
        let pages = self.table.len();
        let q_rows = Layout::rows([self.rows, q_heads, head_dim]);
        let kv_rows = Layout::rows([self.rows, kv_heads, head_dim]);
        let cache = Layout::contiguous([pages, PAGE_SIZE, kv_heads, head_dim]);
        let table: Pages<Device> = Pages::block(self.table.array(), pages);
        let (starts, lengths): (Array<_, Device>, _) = (self.starts.array(), self.lengths.array());
        let format = self.prompt_plan.attention().kv;
        let stream = self.stream.raw();

        // The model has already rotated K.
        let append = Append::new(
            self.k.tensor(kv_rows)?,
            Some(self.v.tensor(kv_rows)?),
            Kv::new(
                format,
                self.k_pool[layer].tensor_mut(cache)?,
                Some(self.v_pool[layer].tensor_mut(cache)?),
            ),
            Place::Sequences { batch: 1, starts, lengths, pages: table },
        );
        // SAFETY: all buffers are this object's, which waits for the stream below; the table names its pages.
        unsafe { self.context.append(&append, &Launch { stream, ..Launch::default() }) }?;

        let workspace = self.workspace.workspace();
        let kv = Kv::new(format, self.k_pool[layer].tensor(cache)?, Some(self.v_pool[layer].tensor(cache)?));
        let keys = Keys::paged(kv, Rows::of_lengths(lengths), table);
        let rows = Rows { max_len: Some(self.rows), ..Rows::starting(starts) };
        let call = Call::new(1, self.q.tensor(q_rows)?, rows, keys, self.o.tensor_mut(q_rows)?);
        let plan = if self.rows == 1 { &self.token_plan } else { &self.prompt_plan };
        // SAFETY: as above; the lengths are those of the cache.
        unsafe { plan.run(&call, &Launch { stream, workspace: Some(&workspace), ..Launch::default() }) }?;
        self.stream.synchronize()?;

        let mut o = vec![F16::default(); q.len()];
        self.o.download(&mut o)?;
        Ok(o.into_iter().map(F16::to_f32).collect())
    }
}
