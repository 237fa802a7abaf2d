package sluice

// #include "calls.h"
import "C"

// enqueue makes a call that enqueues through the context.
func (c *Context) enqueue(launch *Launch, do func(in *memory, launch *C.sluice_launch,
	failure *C.sluice_error) C.sluice_status) error {
	if c == nil {
		return (*object)(nil).use()
	}
	return c.object.enqueue(c.state, launch, do)
}

// Append enqueues an append and returns without waiting; a nil launch is the default stream. The launch needs no
// workspace. Legal during stream capture, except for the first call of its kind, which loads a kernel: a call before the
// capture, or Preload(nil), loads it. Errors and memory as for Plan.Run.
func (c *Context) Append(args *Append, launch *Launch) error {
	return c.enqueue(launch, func(in *memory, launch *C.sluice_launch, failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_cache_append(&c.state.device, c.state.handle, pointer[C.sluice_append_args](in, args), launch,
			failure)
	})
}

// Copy enqueues a copy of pages and returns without waiting. Rules as for Append.
func (c *Context) Copy(args *Copy, launch *Launch) error {
	return c.enqueue(launch, func(in *memory, launch *C.sluice_launch, failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_cache_copy(&c.state.device, c.state.handle, pointer[C.sluice_copy_args](in, args), launch, failure)
	})
}

// Gather enqueues a gather of keys and returns without waiting. Rules as for Append.
func (c *Context) Gather(args *Gather, launch *Launch) error {
	return c.enqueue(launch, func(in *memory, launch *C.sluice_launch, failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_cache_gather(&c.state.device, c.state.handle, pointer[C.sluice_gather_args](in, args), launch,
			failure)
	})
}

// Merge enqueues a merge and returns without waiting. Rules as for Append.
func (c *Context) Merge(args *Merge, launch *Launch) error {
	if err := args.check(); err != nil {
		return err
	}
	return c.enqueue(launch, func(in *memory, launch *C.sluice_launch, failure *C.sluice_error) C.sluice_status {
		return C.sluice_go_attention_merge(&c.state.device, c.state.handle, pointer[C.sluice_merge_args](in, args), launch,
			failure)
	})
}

// check refuses lists with another number of elements than the library will read.
func (m *Merge) check() error {
	if m == nil {
		return nil
	}
	for field, list := range map[string][]DevicePointer{"parts.o_list": m.Parts.OList, "parts.lse_list": m.Parts.LSEList} {
		if list != nil && len(list) != int(m.Parts.Count) {
			return invalid(field, "%s has %d elements; parts.count is %d", field, len(list), m.Parts.Count)
		}
	}
	return nil
}
