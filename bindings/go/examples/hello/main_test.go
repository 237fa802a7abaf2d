package main

func Example() {
	main()
	// Output: the mean of 0, 1, 2, 3 is 0x3e00 in binary16
}
