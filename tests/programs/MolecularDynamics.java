/**
 * Atoms of a noble gas in a periodic box, pair forces after Lennard and Jones, velocity Verlet steps: {@code MolecularDynamics SIDE
 * STEPS} with 4 SIDE^3 atoms. Units: the potential's depth, radius and mass are 1.
 */
public final class MolecularDynamics {
    private static final class Atom {
        double x;
        double y;
        double z;
        double vx;
        double vy;
        double vz;
        double fx;
        double fy;
        double fz;

        Atom(double x, double y, double z) {
            this.x = x;
            this.y = y;
            this.z = z;
        }

        void kick(double halfStep) {
            vx += fx * halfStep;
            vy += fy * halfStep;
            vz += fz * halfStep;
        }

        void drift(double step, double box) {
            x = wrap(x + vx * step, box);
            y = wrap(y + vy * step, box);
            z = wrap(z + vz * step, box);
        }

        double kinetic() {
            return (vx * vx + vy * vy + vz * vz) / 2;
        }

        private static double wrap(double a, double box) {
            if (a < 0) {
                return a + box;
            }
            if (a >= box) {
                return a - box;
            }
            return a;
        }
    }

    private final Atom[] atoms;
    private final double box;
    private final double cutoff;
    private double potential;
    private long pairs;

    /** A face-centred cubic crystal with small velocities whose sum is 0. */
    private MolecularDynamics(int side) {
        // Density 0.83: four atoms a cell.
        double cell = 1.689;
        box = side * cell;
        cutoff = Math.min(2.5, box / 2);
        atoms = new Atom[4 * side * side * side];
        double[][] corners = {{0, 0, 0}, {0.5, 0.5, 0}, {0.5, 0, 0.5}, {0, 0.5, 0.5}};
        int n = 0;
        for (int i = 0; i < side; i++) {
            for (int j = 0; j < side; j++) {
                for (int k = 0; k < side; k++) {
                    for (double[] c : corners) {
                        atoms[n++] = new Atom((i + c[0]) * cell, (j + c[1]) * cell, (k + c[2]) * cell);
                    }
                }
            }
        }
        java.util.Random random = new java.util.Random(6);
        double sx = 0;
        double sy = 0;
        double sz = 0;
        for (Atom a : atoms) {
            sx += a.vx = random.nextDouble() * 2 - 1;
            sy += a.vy = random.nextDouble() * 2 - 1;
            sz += a.vz = random.nextDouble() * 2 - 1;
        }
        for (Atom a : atoms) {
            a.vx -= sx / n;
            a.vy -= sy / n;
            a.vz -= sz / n;
        }
        forces();
    }

    private double nearest(double d) {
        if (d > box / 2) {
            return d - box;
        }
        if (d < -box / 2) {
            return d + box;
        }
        return d;
    }

    private void forces() {
        potential = 0;
        for (Atom a : atoms) {
            a.fx = 0;
            a.fy = 0;
            a.fz = 0;
        }
        for (int i = 0; i < atoms.length; i++) {
            for (int j = i + 1; j < atoms.length; j++) {
                interact(atoms[i], atoms[j]);
            }
        }
    }

    private void interact(Atom a, Atom b) {
        double dx = nearest(a.x - b.x);
        double dy = nearest(a.y - b.y);
        double dz = nearest(a.z - b.z);
        double square = dx * dx + dy * dy + dz * dz;
        if (square > cutoff * cutoff) {
            return;
        }
        pairs++;
        double i2 = 1 / square;
        double i6 = i2 * i2 * i2;
        potential += 4 * i6 * (i6 - 1);
        double force = 48 * i2 * i6 * (i6 - 0.5);
        a.fx += force * dx;
        a.fy += force * dy;
        a.fz += force * dz;
        b.fx -= force * dx;
        b.fy -= force * dy;
        b.fz -= force * dz;
    }

    private void step(double time) {
        for (Atom a : atoms) {
            a.kick(time / 2);
            a.drift(time, box);
        }
        forces();
        for (Atom a : atoms) {
            a.kick(time / 2);
        }
    }

    private double energy() {
        double sum = potential;
        for (Atom a : atoms) {
            sum += a.kinetic();
        }
        return sum;
    }

    public static void main(String[] args) {
        MolecularDynamics gas = new MolecularDynamics(Integer.parseInt(args[0]));
        double before = gas.energy();
        Check check = new Check();
        int steps = Integer.parseInt(args[1]);
        for (int i = 0; i < steps; i++) {
            gas.step(0.002);
            if (i % 10 == 9) {
                check.add(gas.energy()).add(gas.pairs);
            }
        }
        // The integrator keeps the energy but for the jumps at the cutoff.
        if (Math.abs(gas.energy() - before) > 0.05 * Math.abs(before)) {
            throw new IllegalStateException("energy " + before + " became " + gas.energy());
        }
        for (Atom a : gas.atoms) {
            check.add(a.x + " " + a.y + " " + a.z);
        }
        check.print("moldyn");
    }
}
