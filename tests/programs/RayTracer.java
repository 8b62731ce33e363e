import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Renders spheres over a chequered floor, with shadows and mirrors: {@code RayTracer WIDTH FRAMES}. */
public final class RayTracer {
    private record Vector(double x, double y, double z) {
        Vector plus(Vector o) {
            return new Vector(x + o.x, y + o.y, z + o.z);
        }

        Vector minus(Vector o) {
            return new Vector(x - o.x, y - o.y, z - o.z);
        }

        Vector times(double f) {
            return new Vector(x * f, y * f, z * f);
        }

        double dot(Vector o) {
            return x * o.x + y * o.y + z * o.z;
        }

        Vector unit() {
            return times(1 / Math.sqrt(dot(this)));
        }
    }

    private record Ray(Vector from, Vector direction) {
        Vector at(double distance) {
            return from.plus(direction.times(distance));
        }
    }

    private record Material(Vector colour, double mirror, double shine) {}

    private record Light(Vector at, double power) {}

    private interface Shape {
        /** Distance to the nearest point that a ray meets, or infinity. */
        double meets(Ray ray);

        Vector normal(Vector at);

        Material material(Vector at);
    }

    private record Sphere(Vector centre, double radius, Material material) implements Shape {
        @Override
        public double meets(Ray ray) {
            Vector to = centre.minus(ray.from);
            double along = to.dot(ray.direction);
            double square = radius * radius - to.dot(to) + along * along;
            if (square < 0) {
                return Double.POSITIVE_INFINITY;
            }
            double half = Math.sqrt(square);
            if (along - half > 1e-6) {
                return along - half;
            }
            return along + half > 1e-6 ? along + half : Double.POSITIVE_INFINITY;
        }

        @Override
        public Vector normal(Vector at) {
            return at.minus(centre).unit();
        }

        @Override
        public Material material(Vector at) {
            return material;
        }
    }

    private record Floor(double height, Material light, Material dark) implements Shape {
        private static final Vector UP = new Vector(0, 1, 0);

        @Override
        public double meets(Ray ray) {
            double distance = (height - ray.from.y) / ray.direction.y;
            return distance > 1e-6 ? distance : Double.POSITIVE_INFINITY;
        }

        @Override
        public Vector normal(Vector at) {
            return UP;
        }

        @Override
        public Material material(Vector at) {
            return ((int) Math.floor(at.x) + (int) Math.floor(at.z) & 1) == 0 ? light : dark;
        }
    }

    private static final Vector BLACK = new Vector(0, 0, 0);
    private final List<Shape> shapes = new ArrayList<>();
    private final List<Light> lights = List.of(new Light(new Vector(-6, 9, -4), 0.7), new Light(new Vector(5, 6, -8), 0.5));

    private RayTracer(int spheres) {
        Random random = new Random(12);
        shapes.add(new Floor(0, new Material(new Vector(0.9, 0.9, 0.9), 0.1, 0), new Material(new Vector(0.1, 0.1, 0.2), 0.1, 0)));
        for (int i = 0; i < spheres; i++) {
            double radius = 0.2 + random.nextDouble() * 0.6;
            Vector centre = new Vector(random.nextDouble() * 8 - 4, radius, random.nextDouble() * 8);
            Vector colour = new Vector(random.nextDouble(), random.nextDouble(), random.nextDouble());
            shapes.add(new Sphere(centre, radius, new Material(colour, i % 3 * 0.3, 0.5)));
        }
    }

    private Vector trace(Ray ray, int depth) {
        Shape hit = null;
        double distance = Double.POSITIVE_INFINITY;
        for (Shape shape : shapes) {
            double d = shape.meets(ray);
            if (d < distance) {
                distance = d;
                hit = shape;
            }
        }
        if (hit == null) {
            return new Vector(0.4, 0.5, 0.8).times(0.5 + 0.5 * Math.max(0, ray.direction.y));
        }
        Vector at = ray.at(distance);
        Vector normal = hit.normal(at);
        Material material = hit.material(at);
        Vector reflected = ray.direction.minus(normal.times(2 * normal.dot(ray.direction)));
        Vector colour = material.colour.times(0.15);
        for (Light light : lights) {
            colour = colour.plus(lit(light, at, normal, reflected, material));
        }
        if (material.mirror > 0 && depth > 0) {
            Vector mirrored = trace(new Ray(at, reflected), depth - 1);
            colour = colour.times(1 - material.mirror).plus(mirrored.times(material.mirror));
        }
        return colour;
    }

    private Vector lit(Light light, Vector at, Vector normal, Vector reflected, Material material) {
        Vector to = light.at.minus(at);
        double distance = Math.sqrt(to.dot(to));
        Vector direction = to.times(1 / distance);
        double slope = direction.dot(normal);
        if (slope <= 0 || inShadow(new Ray(at, direction), distance)) {
            return BLACK;
        }
        Vector colour = material.colour.times(slope * light.power);
        double glint = reflected.dot(direction);
        if (material.shine > 0 && glint > 0) {
            for (int i = 0; i < 4; i++) {
                glint *= glint;
            }
            double white = material.shine * glint * light.power;
            colour = colour.plus(new Vector(white, white, white));
        }
        return colour;
    }

    private boolean inShadow(Ray ray, double distance) {
        for (Shape shape : shapes) {
            if (shape.meets(ray) < distance) {
                return true;
            }
        }
        return false;
    }

    private byte[] render(int width, double turn) {
        byte[] pixels = new byte[3 * width * width];
        Vector eye = new Vector(turn * 3, 2.5, -7);
        for (int y = 0; y < width; y++) {
            for (int x = 0; x < width; x++) {
                Vector direction = new Vector((x - width / 2.0) / width - turn * 0.3, (width / 2.0 - y) / width - 0.15, 1).unit();
                Vector colour = trace(new Ray(eye, direction), 4);
                int at = 3 * (y * width + x);
                pixels[at] = level(colour.x);
                pixels[at + 1] = level(colour.y);
                pixels[at + 2] = level(colour.z);
            }
        }
        return pixels;
    }

    private static byte level(double intensity) {
        return (byte) (int) Math.max(0, Math.min(255, intensity * 255));
    }

    public static void main(String[] args) {
        RayTracer scene = new RayTracer(24);
        Check check = new Check();
        int frames = Integer.parseInt(args[1]);
        for (int i = 0; i < frames; i++) {
            check.add(scene.render(Integer.parseInt(args[0]), (i + 0.5) / frames - 0.5));
        }
        check.print("raytracer");
    }
}
