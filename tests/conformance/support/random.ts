// Numbers that look random and are the same at each run (mulberry32), so that a failure repeats.

/** A source of whole numbers from 0 up to `below`. */
export function seeded(seed: number): (below: number) => number {
    let state = seed >>> 0;
    return (below) => {
        state = (state + 0x6d2b79f5) >>> 0;
        let mixed = Math.imul(state ^ (state >>> 15), state | 1);
        mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
        return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
    };
}
