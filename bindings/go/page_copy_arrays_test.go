package sluice_test

import (
	"math/rand"
	"reflect"
	"testing"

	sluice "github.com/sluice-attention/sluice/bindings/go"
	"github.com/sluice-attention/sluice/bindings/go/hip"
)

// Copies and gathers between equal types take scales and zero points along: on the device and on the host, against what
// the header says of each number.

// twin is a tensor on both sides. values are its numbers, first those of the host.
type twin struct {
	host   sluice.HostTensor
	device sluice.Tensor
	values func() (onHost, onDevice []float64)
}

func newTwin[T uint8 | uint16 | float32](t *testing.T, device *hip.Runtime, view sluice.View, next func() int) twin {
	count, err := view.Elements()
	check(t, err)
	host := make([]T, count/view.Type.Block())
	for i := range host {
		host[i] = T(next())
	}
	memory := onDevice(t, device, host)
	tensor, err := memory.Tensor(0, view)
	check(t, err)
	return twin{sluice.OnHost(host, view), tensor, func() (onHost, onDevice []float64) {
		found := make([]T, len(host))
		check(t, hip.Download(found, memory, 0))
		for i := range host {
			onHost, onDevice = append(onHost, float64(host[i])), append(onDevice, float64(found[i]))
		}
		return onHost, onDevice
	}}
}

// moved is an array of a cache, and where a copy and a gather put it.
type moved struct{ from, copied, gathered twin }

func TestArraysGoWithElements(t *testing.T) {
	const pages, size, heads, dim, tokens, group = 3, 4, 2, 64, 7, 32
	for _, c := range []struct {
		name         string
		of           sluice.DType
		kKind, vKind sluice.ScaleKind
		flags        sluice.ProblemFlags
		group        int32
	}{
		{"i8", sluice.I8, sluice.ScalePerToken, sluice.ScalePerPage, 0, 0},
		{"u4", sluice.U4, sluice.ScalePerGroup, sluice.ScalePerGroup, sluice.ZeroPoints, group},
	} {
		t.Run(c.name, func(t *testing.T) {
			context, device := emulated(t)
			random := rand.New(rand.NewSource(11))
			number, zero := func() int { return random.Intn(256) }, func() int { return 0 }
			make3 := func(of sluice.DType, from, copied, out [4]int64) moved {
				twinOf := func(shape [4]int64, next func() int) twin {
					view := sluice.Contiguous(of, shape)
					switch of {
					case sluice.F16:
						return newTwin[uint16](t, device, view, next)
					case sluice.F32:
						return newTwin[float32](t, device, view, next)
					}
					return newTwin[uint8](t, device, view, next)
				}
				return moved{twinOf(from, number), twinOf(copied, zero), twinOf(out, zero)}
			}
			elements := func() moved {
				cache := [4]int64{pages, size, heads, dim}
				return make3(c.of, cache, cache, [4]int64{1, tokens, heads, dim})
			}
			scales := func(kind sluice.ScaleKind) moved {
				of, cache, out := sluice.F32, [4]int64{pages, size, heads, 1}, [4]int64{1, tokens, heads, 1}
				switch kind {
				case sluice.ScalePerPage:
					cache[1] = 1
				case sluice.ScalePerGroup:
					of, cache[3], out[3] = sluice.F16, dim/group, dim/group
				}
				return make3(of, cache, cache, out)
			}
			k, v, kScales, vScales := elements(), elements(), scales(c.kKind), scales(c.vKind)
			all := map[string]moved{"k": k, "v": v, "k_scales": kScales, "v_scales": vScales}
			var kZeros, vZeros moved
			if c.flags != 0 {
				kZeros, vZeros = scales(c.kKind), scales(c.vKind)
				all["k_zeros"], all["v_zeros"] = kZeros, vZeros
			}
			// agreed are an array's numbers, which both sides have; wanted are those that should be there.
			agreed := func(name string, of twin, wanted []float64) {
				t.Helper()
				onHost, onDevice := of.values()
				if !reflect.DeepEqual(onHost, onDevice) || !reflect.DeepEqual(onHost, wanted) {
					t.Errorf("%s is %v on the device and %v on the host, expected %v", name, onDevice, onHost, wanted)
				}
			}

			pairs := []int32{0, 2, -1, 1, 1, 0}
			hostCopy := sluice.HostPageCopy{Flags: c.flags, SourceType: c.of, TargetType: c.of, KVHeads: heads, HeadDimQK: dim,
				HeadDimV: dim, PageSize: size, KScaleKind: c.kKind, VScaleKind: c.vKind, KSource: k.from.host, VSource: v.from.host,
				KTarget: k.copied.host, VTarget: v.copied.host, Pairs: pairs, PairCount: 3,
				KScales: kScales.from.host, VScales: vScales.from.host, KZeros: kZeros.from.host, VZeros: vZeros.from.host,
				KTargetScales: kScales.copied.host, VTargetScales: vScales.copied.host,
				KTargetZeros: kZeros.copied.host, VTargetZeros: vZeros.copied.host, ScaleGroup: c.group}
			check(t, sluice.ReferenceCopy(&hostCopy))
			deviceCopy := sluice.PageCopy{Flags: c.flags, SourceType: c.of, TargetType: c.of, KVHeads: heads, HeadDimQK: dim,
				HeadDimV: dim, PageSize: size, KScaleKind: c.kKind, VScaleKind: c.vKind, KSource: k.from.device, VSource: v.from.device,
				KTarget: k.copied.device, VTarget: v.copied.device, Pairs: pointerTo(t, device, pairs), PairCount: 3,
				KScales: kScales.from.device, VScales: vScales.from.device, KZeros: kZeros.from.device, VZeros: vZeros.from.device,
				KTargetScales: kScales.copied.device, VTargetScales: vScales.copied.device,
				KTargetZeros: kZeros.copied.device, VTargetZeros: vZeros.copied.device, ScaleGroup: c.group}
			check(t, context.KVCopy(&deviceCopy, nil))
			check(t, device.Synchronize(0))
			for name, array := range all {
				from, _ := array.from.values()
				page := len(from) / pages
				wanted := make([]float64, len(from))
				copy(wanted[2*page:], from[:page])
				copy(wanted, from[page:2*page])
				agreed(name, array.copied, wanted)
			}

			// Keys 2 to 6 of a sequence in pages 2 and 0, as rows 1 to 5.
			starts, lengths, first, table := []int32{1, 6}, []int32{7}, []int32{2}, []int32{2, 0}
			hostGather := sluice.HostGather{Flags: c.flags, CacheType: c.of, OutType: c.of, KVHeads: heads, HeadDimQK: dim,
				HeadDimV: dim, PageSize: size, PageTableKind: sluice.PageTableBlock, KScaleKind: c.kKind, VScaleKind: c.vKind, Batch: 1,
				Tokens: tokens, KCache: k.from.host, VCache: v.from.host, KOut: k.gathered.host, VOut: v.gathered.host,
				OutStarts: starts, KVLengths: lengths, FirstKeys: first, PageTable: table, PageTableStride: 2,
				KScales: kScales.from.host, VScales: vScales.from.host, KZeros: kZeros.from.host, VZeros: vZeros.from.host,
				KOutScales: kScales.gathered.host, VOutScales: vScales.gathered.host,
				KOutZeros: kZeros.gathered.host, VOutZeros: vZeros.gathered.host, ScaleGroup: c.group}
			check(t, sluice.ReferenceGather(&hostGather))
			deviceGather := sluice.Gather{Flags: c.flags, CacheType: c.of, OutType: c.of, KVHeads: heads, HeadDimQK: dim,
				HeadDimV: dim, PageSize: size, PageTableKind: sluice.PageTableBlock, KScaleKind: c.kKind, VScaleKind: c.vKind, Batch: 1,
				Tokens: tokens, KCache: k.from.device, VCache: v.from.device, KOut: k.gathered.device, VOut: v.gathered.device,
				OutStarts: pointerTo(t, device, starts), KVLengths: pointerTo(t, device, lengths),
				FirstKeys: pointerTo(t, device, first), PageTable: pointerTo(t, device, table), PageTableStride: 2,
				KScales: kScales.from.device, VScales: vScales.from.device, KZeros: kZeros.from.device, VZeros: vZeros.from.device,
				KOutScales: kScales.gathered.device, VOutScales: vScales.gathered.device,
				KOutZeros: kZeros.gathered.device, VOutZeros: vZeros.gathered.device, ScaleGroup: c.group}
			check(t, context.KVGather(&deviceGather, nil))
			check(t, device.Synchronize(0))
			for name, array := range all {
				from, _ := array.from.values()
				out, _ := array.gathered.values()
				page, row := len(from)/pages, len(out)/tokens
				wanted := make([]float64, len(out))
				for key := 2; key < 7; key++ {
					at := int(table[key/size]) * page
					if page != row { // a page's only scale is for all of its rows
						at += key % size * row
					}
					copy(wanted[(key-1)*row:], from[at:at+row])
				}
				agreed(name+" in rows", array.gathered, wanted)
			}

			refuseCopy := func(field, part string, change func(of *sluice.HostPageCopy)) {
				t.Helper()
				wrong := hostCopy
				change(&wrong)
				refused(t, sluice.ReferenceCopy(&wrong), sluice.InvalidArgument, field, part)
			}
			refuseGather := func(field, part string, change func(of *sluice.HostGather)) {
				t.Helper()
				wrong := hostGather
				change(&wrong)
				refused(t, sluice.ReferenceGather(&wrong), sluice.InvalidArgument, field, part)
			}
			refuseCopy("k_target_scales.shape[1]", "page_size", func(of *sluice.HostPageCopy) { of.KTargetScales.Shape[1] = 3 })
			refuseCopy("v_target_scales.data", "NULL", func(of *sluice.HostPageCopy) { of.VTargetScales = sluice.HostTensor{} })
			refuseCopy("k_scales.shape[2]", "kv_heads", func(of *sluice.HostPageCopy) { of.KScales.Shape[2] = 1 })
			refuseCopy("pairs[1]", "2", func(of *sluice.HostPageCopy) { of.VTargetScales.Shape[0] = 2 })
			refuseGather("k_out_scales.shape[1]", "tokens", func(of *sluice.HostGather) { of.KOutScales.Shape[1] = tokens - 1 })
			refuseGather("v_out_scales.shape[0]", "batch of rows", func(of *sluice.HostGather) { of.VOutScales.Shape[0] = 2 })
			refuseGather("page_table[0]", "2", func(of *sluice.HostGather) { of.VScales.Shape[0] = 2 })
			if c.flags != 0 {
				refuseCopy("v_target_zeros.shape[3]", "groups of a row", func(of *sluice.HostPageCopy) { of.VTargetZeros.Shape[3] = 1 })
				refuseCopy("scale_group", "48", func(of *sluice.HostPageCopy) { of.ScaleGroup = 48 })
				refuseCopy("k_target_zeros.data", "NULL", func(of *sluice.HostPageCopy) { of.KTargetZeros = sluice.HostTensor{} })
				refuseGather("k_out_zeros.type", "the call says F16", func(of *sluice.HostGather) { of.KOutZeros.Type = sluice.BF16 })
				refuseGather("v_zeros.shape[1]", "page_size", func(of *sluice.HostGather) { of.VZeros.Shape[1] = 3 })
			}
			// The same shapes are checked of what is on the device.
			deviceCopy.KTargetScales.Shape[1] = 3
			refused(t, context.KVCopy(&deviceCopy, nil), sluice.InvalidArgument, "k_target_scales.shape[1]", "page_size")
			deviceGather.VOutScales.Shape[1] = tokens - 1
			refused(t, context.KVGather(&deviceGather, nil), sluice.InvalidArgument, "v_out_scales.shape[1]", "tokens")
		})
	}
}
