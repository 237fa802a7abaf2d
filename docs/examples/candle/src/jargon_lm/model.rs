//! The decoder of docs/examples/jargon_lm/model, in candle: F32, except Q, K and V, which attention and the cache
//! hold in F16.

use candle_core::{bail, DType, Device, Error, Result, Tensor, D};
use candle_nn::kv_cache::KvCache;
use candle_nn::rotary_emb::rope_thd;
use candle_nn::{embedding, linear_no_bias, rms_norm, Embedding, Linear, Module, RmsNorm, VarBuilder};
use serde::de::DeserializeOwned;
use serde::Deserialize;
use sluice_candle::{sluice_attention, Options, Sluice};
use std::path::Path;

#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    vocab_size: usize,
    hidden_size: usize,
    num_layers: usize,
    num_heads: usize,
    num_kv_heads: usize,
    head_dim: usize,
    mlp_size: usize,
    max_positions: usize,
    rope_base: f32,
    norm_eps: f64,
}

/// The contents of a JSON file.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::from(error).with_path(path))?;
    serde_json::from_str(&text).map_err(|error| Error::msg(error).with_path(path))
}

struct Layer {
    attn_norm: RmsNorm,
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    mlp_norm: RmsNorm,
    gate: Linear,
    up: Linear,
    down: Linear,
    cache: KvCache,
}

impl Layer {
    fn load(config: &Config, weights: VarBuilder) -> Result<Layer> {
        let (hidden, mlp) = (config.hidden_size, config.mlp_size);
        let (q_size, kv_size) = (config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim);
        Ok(Layer {
            attn_norm: rms_norm(hidden, config.norm_eps, weights.pp("attn_norm"))?,
            q: linear_no_bias(hidden, q_size, weights.pp("q"))?,
            k: linear_no_bias(hidden, kv_size, weights.pp("k"))?,
            v: linear_no_bias(hidden, kv_size, weights.pp("v"))?,
            o: linear_no_bias(q_size, hidden, weights.pp("o"))?,
            mlp_norm: rms_norm(hidden, config.norm_eps, weights.pp("mlp_norm"))?,
            gate: linear_no_bias(hidden, mlp, weights.pp("gate"))?,
            up: linear_no_bias(hidden, mlp, weights.pp("up"))?,
            down: linear_no_bias(mlp, hidden, weights.pp("down"))?,
            cache: KvCache::new(1, config.max_positions), // tokens are dimension 1
        })
    }
}

pub struct Model {
    config: Config,
    embed: Embedding,
    norm: RmsNorm,
    output: Linear,
    layers: Vec<Layer>,
    /// \[position, head_dim / 2\].
    cosines: Tensor,
    sines: Tensor,
    sluice: Sluice,
    /// Positions in the caches; the next byte has this position.
    positions: usize,
}

impl Model {
    pub fn load(folder: &Path, sluice: Sluice) -> Result<Model> {
        let config: Config = read_json(&folder.join("config.json"))?;
        let path = folder.join("model.safetensors");
        let bytes = std::fs::read(&path).map_err(|error| Error::from(error).with_path(&path))?;
        let weights = VarBuilder::from_buffered_safetensors(bytes, DType::F32, &Device::Cpu)?;
        let embed = embedding(config.vocab_size, config.hidden_size, weights.pp("embed"))?;
        let layers = (0..config.num_layers).map(|i| Layer::load(&config, weights.pp("layers").pp(i)));

        let half = config.head_dim / 2;
        let frequencies: Vec<f32> =
            (0..half).map(|i| config.rope_base.powf(-(i as f32) / half as f32)).collect();
        let frequencies = Tensor::from_vec(frequencies, (1, half), &Device::Cpu)?;
        let positions = Tensor::arange(0u32, config.max_positions as u32, &Device::Cpu)?;
        let positions = positions.to_dtype(DType::F32)?.reshape((config.max_positions, 1))?;
        let angles = positions.broadcast_mul(&frequencies)?;
        Ok(Model {
            norm: rms_norm(config.hidden_size, config.norm_eps, weights.pp("norm"))?,
            output: Linear::new(embed.embeddings().clone(), None), // tied
            layers: layers.collect::<Result<_>>()?,
            cosines: angles.cos()?,
            sines: angles.sin()?,
            embed,
            config,
            sluice,
            positions: 0,
        })
    }

    /// Appends `bytes` to the text and returns the logits of the last of them.
    pub fn forward(&mut self, bytes: &[u8]) -> Result<Vec<f32>> {
        let (first, rows, config) = (self.positions, bytes.len(), &self.config);
        if rows == 0 || first + rows > config.max_positions {
            bail!(
                "{rows} bytes from position {first} on would leave positions 0 to {}",
                config.max_positions - 1
            );
        }
        let cosines = self.cosines.narrow(0, first, rows)?;
        let sines = self.sines.narrow(0, first, rows)?;
        let mut x = self.embed.forward(&Tensor::new(bytes, &Device::Cpu)?)?.unsqueeze(0)?;
        for layer in &mut self.layers {
            let input = layer.attn_norm.forward(&x)?;
            let heads = |x: Tensor, count| x.reshape((1, rows, count, config.head_dim));
            let q = rope_thd(&heads(layer.q.forward(&input)?, config.num_heads)?, &cosines, &sines)?;
            let k = rope_thd(&heads(layer.k.forward(&input)?, config.num_kv_heads)?, &cosines, &sines)?;
            let v = heads(layer.v.forward(&input)?, config.num_kv_heads)?;
            let (k, v) = layer.cache.append(&k.to_dtype(DType::F16)?, &v.to_dtype(DType::F16)?)?;
            let options = Options { causal: true, ..Options::default() };
            let o = sluice_attention(&self.sluice, &q.to_dtype(DType::F16)?, &k, &v, &options)?;
            let o = o.to_dtype(DType::F32)?.flatten_from(D::Minus2)?;
            x = (x + layer.o.forward(&o)?)?;

            let input = layer.mlp_norm.forward(&x)?;
            let inner = (layer.gate.forward(&input)?.silu()? * layer.up.forward(&input)?)?;
            x = (x + layer.down.forward(&inner)?)?;
        }
        self.positions += rows;
        let last = x.narrow(1, rows - 1, 1)?.contiguous()?;
        self.output.forward(&self.norm.forward(&last)?)?.flatten_all()?.to_vec1()
    }
}

/// The byte with the largest logit; of several, the first.
pub fn most_likely(logits: &[f32]) -> u8 {
    let larger = |best: usize, i: usize| if logits[i] > logits[best] { i } else { best };
    (0..logits.len()).fold(0, larger) as u8
}
